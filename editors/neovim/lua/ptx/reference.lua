-- The machine code of a function by our compiler and by the user's reference compiler, in two windows of a tab.
local M = {}

local server = require('ptx.server')

local function window(name, text)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.bo[buffer].bufhidden = 'wipe'
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(text, '\n'))
  vim.bo[buffer].modifiable, vim.bo[buffer].filetype = false, 'ptx-sass'
  vim.api.nvim_win_set_buf(0, buffer)
  vim.wo.winbar = name:gsub('%%', '%%%%')
  vim.cmd.diffthis()
end

function M.show(name)
  local buffer = vim.api.nvim_get_current_buf()
  local client = server.of_ptx(buffer)
  if not client then
    return
  end
  local params = { textDocument = vim.lsp.util.make_text_document_params(buffer), ['function'] = name }
  client:request('ptx/reference', params, function(err, answer)
    if err or not answer or answer == vim.NIL then
      return vim.notify('ptx: ' .. (err and err.message or 'the reference compiler has not compiled ' .. name),
        vim.log.levels.WARN)
    end
    vim.cmd.tabnew()
    vim.bo.bufhidden = 'wipe'
    window(name .. ' (reference)', answer.theirs)
    vim.cmd('vertical split')
    window(name .. ' (ours)', answer.ours)
  end, buffer)
end

return M
