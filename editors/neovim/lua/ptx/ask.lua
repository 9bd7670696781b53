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

-- Asks about the function whose code is shown or which is under the cursor. Passes the answer and the PTX buffer to
-- `take`. If there is no answer, a message says why.
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

-- Asks again after each edit and save of a PTX buffer, as long as `is_wanted` returns true, and passes each answer to
-- `show`. One buffer is followed for each `purpose`.
function M.follow(purpose, source, is_wanted, method, params, show)
  require('ptx.edits').follow(purpose, source, is_wanted, function()
    M.about(source, method, params, function(_, answer)
      if answer and is_wanted() then
        show(answer)
      end
    end)
  end)
end

return M
