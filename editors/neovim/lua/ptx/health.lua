-- :checkhealth ptx
local M = {}

local function version_of(command)
  local ok, answer = pcall(function()
    return vim.system({ command, '--version' }, { text = true, timeout = 10000 }):wait()
  end)
  if ok and answer.code == 0 then
    return vim.trim(answer.stdout)
  end
  return nil, ok and vim.trim(answer.stderr or '') or tostring(answer)
end

function M.check()
  local health, server = vim.health, require('ptx.server')
  health.start('ptx')
  if vim.fn.has('nvim-0.11') == 1 then
    health.ok('Neovim ' .. tostring(vim.version()))
  else
    health.error('Neovim 0.11 or newer is required')
    return
  end

  local command = server.command()
  local missing = server.missing()
  if missing then
    health.error(missing)
  elseif command then
    local version, why = version_of(command)
    if version then
      health.ok(('`%s` is %s'):format(vim.fn.exepath(command), version))
    else
      health.error(('`%s` does not start: %s'):format(command, why))
    end
  else
    health.info('the server is started by a function of your own')
  end

  if vim.lsp.is_enabled and not vim.lsp.is_enabled('ptx') then
    health.warn('the server is not enabled', { "call require('ptx').setup() or vim.lsp.enable('ptx')" })
  end
  local clients = vim.lsp.get_clients({ name = 'ptx' })
  if #clients > 0 then
    for _, client in ipairs(clients) do
      health.ok(('running for %d buffer(s), root %s'):format(vim.tbl_count(client.attached_buffers), client.root_dir or 'none'))
    end
  else
    health.info('not running; it starts with the first PTX file')
  end

  local syntax = vim.api.nvim_get_runtime_file('syntax/ptx.vim', true)
  health.info('colors without the server: ' .. (syntax[1] or 'none'))
  health.info('log: ' .. vim.lsp.log.get_filename())
end

return M
