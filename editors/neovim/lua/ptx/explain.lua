-- Pages about diagnostics, instructions and words of machine code.
local M = {}

-- Shows the page of a word in a floating window at the cursor. A second call moves the cursor into this window.
function M.show(client, buffer, word)
  -- With `true`, the server returns the page and leaves its display to the client.
  local params = { command = 'ptx.explain', arguments = { word, true } }
  client:request('workspace/executeCommand', params, function(err, page)
    if err then
      return vim.notify('ptx: ' .. err.message, vim.log.levels.ERROR)
    end
    vim.lsp.util.open_floating_preview(vim.split(page, '\n'), 'markdown',
      { focus_id = 'ptx.explain', border = 'rounded', max_width = 100 })
  end, buffer)
end

-- The code of a control word, a constant, or the name of an instruction or an operand with its suffixes.
local WORDS = { '%f[%w]B[-%d]+:R[-%d]:W[-%d]:[-Y]:S%d%d', '%f[%w]c%[0x%x+%]%[[^%]]*%]', '%f[%w]%u[%w_.]*' }

-- The word of machine code at a column of a line, if it is not in a comment.
function M.word_at(line, column)
  local comment = line:find('//', 1, true)
  for _, pattern in ipairs(WORDS) do
    local start = 1
    while true do
      local from, to = line:find(pattern, start)
      if not from or comment and comment < from then
        break
      end
      if from <= column and column <= to then
        return line:sub(from, to)
      end
      start = to + 1
    end
  end
end

-- Shows what the word of machine code under the cursor means.
function M.here()
  local client = vim.lsp.get_clients({ name = 'ptx' })[1]
  local word = M.word_at(vim.api.nvim_get_current_line(), vim.fn.col('.'))
  if not client then
    vim.notify('ptx: the language server is not running', vim.log.levels.WARN)
  elseif word then
    M.show(client, vim.api.nvim_get_current_buf(), word)
  end
end

return M
