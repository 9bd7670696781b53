-- Asks the server about a function.
local M = {}

-- Asks about a function of a PTX buffer. `take` gets an error or the answer, which is nil outside of a function.
function M.about(source, method, params, take)
  local client = vim.lsp.get_clients({ bufnr = source, name = 'ptx' })[1]
  if client then
    local document = { textDocument = vim.lsp.util.make_text_document_params(source) }
    client:request(method, vim.tbl_extend('force', document, params), function(err, answer)
      take(err, answer ~= vim.NIL and answer or nil)
    end, source)
  end
end

-- Asks about the function whose code is shown or which is under the cursor. `take` gets the answer, the buffer with the
-- PTX. Tells the user if there is no answer.
function M.here(method, more, take)
  local source, place = require('ptx.sass').place()
  if not source or not place then
    return
  end
  M.about(source, method, vim.tbl_extend('force', place, more), function(err, answer)
    if err then
      vim.notify('ptx: ' .. err.message, vim.log.levels.ERROR)
    elseif not answer then
      vim.notify('ptx: the cursor is not inside a function', vim.log.levels.INFO)
    else
      take(answer, source)
    end
  end)
end

return M
