-- Messages for the user when the server is missing or has ended.
local M = {}

local leaving = false
vim.api.nvim_create_autocmd('VimLeavePre', { callback = function() leaving = true end })

-- The server program that is configured for PTX, or nil if the configuration starts the server with a function.
function M.command()
  local config = vim.lsp.config.ptx
  return config and type(config.cmd) == 'table' and config.cmd[1] or nil
end

-- Advice if this program does not exist; nil if it exists.
function M.missing()
  local command = M.command()
  if command and vim.fn.executable(command) == 0 then
    return 'the language server `' .. command .. '` is not on the PATH. Install it with '
      .. '`cargo install --path lsp` in a checkout of ptx-analyzer, or name it: '
      .. "vim.lsp.config('ptx', { cmd = { '/path/to/ptx-lsp' } })"
  end
end

-- Tells the user if the program is missing.
function M.look()
  local missing = M.missing()
  if missing then
    -- Schedule the message: an error in an autocommand would stop the other autocommands, such as those for colors.
    vim.schedule(function()
      vim.notify('ptx: ' .. missing .. '. See :checkhealth ptx', vim.log.levels.ERROR)
    end)
  end
end

-- Tells the user that the server has ended unexpectedly.
function M.ended(code, signal)
  if leaving or (code == 0 and signal == 0) then
    return
  end
  vim.schedule(function()
    vim.notify(('ptx: the language server has ended (status %d, signal %d). :PtxRestart starts it again; its log is %s')
      :format(code, signal, vim.lsp.log.get_filename()), vim.log.levels.ERROR)
  end)
end

-- Starts the server again for the open files.
function M.restart()
  vim.lsp.enable('ptx', false)
  vim.defer_fn(function() vim.lsp.enable('ptx') end, 200)
end

-- Also starts the server for PTX inside other languages, with the command that is configured for PTX. If the program is
-- missing, the user gets no message, because most of these files contain no PTX.
function M.enable_embedded()
  local command = vim.lsp.config.ptx and vim.lsp.config.ptx.cmd
  if type(command) == 'table' and vim.fn.executable(command[1]) == 0 then
    return
  end
  vim.lsp.config('ptx_embedded', { cmd = command })
  vim.lsp.enable('ptx_embedded')
end

local function named(name, buffer)
  return vim.lsp.get_clients({ bufnr = buffer, name = name })[1]
end

-- Returns the client of a buffer with PTX or a language that contains PTX. Tells the user if there is none.
function M.client(buffer)
  local client = named('ptx', buffer) or named('ptx_embedded', buffer)
  if not client then
    local why = M.missing() or 'no language server is attached to this buffer'
    vim.notify('ptx: ' .. why .. '. See :checkhealth ptx', vim.log.levels.WARN)
  end
  return client
end

-- Returns the client of a PTX buffer. Otherwise tells the user that the command needs PTX.
function M.of_ptx(buffer)
  local client = named('ptx', buffer)
  if not client and named('ptx_embedded', buffer) then
    vim.notify('ptx: only in PTX files: inline assembly is compiled as a part of the function around it', vim.log.levels.WARN)
    return nil
  end
  return client or M.client(buffer)
end

return M
