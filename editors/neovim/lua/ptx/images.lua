-- Shows the PTX and the machine code in cubins, fatbins and programs as documents.
local M = {}

local server = require('ptx.server')

-- Returns the documents in a file, or nil and an error message.
function M.read(path)
  local command = server.command()
  if not command then
    return nil, 'the language server is not started by a program'
  end
  local ok, result = pcall(function()
    return vim.system({ command, 'images', path }, { text = true, timeout = 60000 }):wait()
  end)
  if not ok then
    return nil, tostring(result)
  end
  if result.code ~= 0 then
    return nil, vim.trim(result.stderr ~= '' and result.stderr or 'no answer in a minute')
  end
  return vim.json.decode(result.stdout)
end

local function fill(buffer, document)
  vim.bo[buffer].modifiable = true
  local text = document.text or ('// ' .. (document.error or ''))
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(text, '\n'))
  vim.bo[buffer].modifiable, vim.bo[buffer].modified, vim.bo[buffer].readonly = false, false, true
  vim.bo[buffer].swapfile, vim.bo[buffer].buftype = false, 'nofile'
  vim.bo[buffer].filetype = document.language
end

-- Shows the first document of a file in a buffer, and the others in further buffers with names such as FILE//sm_90.ptx.
function M.show(path, buffer)
  local documents, why = M.read(path)
  if not documents then
    vim.notify('ptx: ' .. why, vim.log.levels.ERROR)
    return
  end
  for index, document in ipairs(documents) do
    local target = buffer
    if index > 1 then
      target = vim.fn.bufadd(path .. '//' .. document.name)
      vim.fn.bufload(target)
      vim.bo[target].buflisted = true
    end
    fill(target, document)
  end
  if #documents > 1 then
    local names = vim.tbl_map(function(document) return document.name end, documents)
    vim.notify('ptx: ' .. table.concat(names, ', ') .. ' (see :ls)')
  end
end

function M.setup()
  vim.api.nvim_create_autocmd('BufReadCmd', { pattern = { '*.cubin', '*.fatbin' }, callback = function(args)
    M.show(vim.fn.fnamemodify(args.file, ':p'), args.buf)
  end })
  vim.api.nvim_create_user_command('PtxImages', function(args)
    local path = vim.fn.fnamemodify(args.args, ':p')
    vim.cmd.enew()
    M.show(path, vim.api.nvim_get_current_buf())
  end, { nargs = 1, complete = 'file', desc = 'Show the PTX and the machine code in a program' })
end

return M
