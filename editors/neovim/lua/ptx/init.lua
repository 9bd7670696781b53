-- The parts of the client that Neovim does not have by itself: the machine code of a function in a window
-- beside the PTX, with both cursors tied together.
local M = {}

local highlight = vim.api.nvim_create_namespace('ptx.sass')

-- Shows the machine code of the function under the cursor.
function M.show_sass(params)
  local source = vim.api.nvim_get_current_buf()
  local client = vim.lsp.get_clients({ bufnr = source, name = 'ptx' })[1]
  if not client then
    return vim.notify('ptx: no language server is attached to this buffer', vim.log.levels.WARN)
  end
  params = params or vim.lsp.util.make_position_params(0, client.offset_encoding)
  client:request('ptx/sassView', params, function(err, view)
    if err then
      return vim.notify('ptx: ' .. err.message, vim.log.levels.ERROR)
    end
    if not view or view == vim.NIL then
      return vim.notify('ptx: there is no function at the cursor', vim.log.levels.INFO)
    end
    M.open(source, view)
  end, source)
end

-- Opens a view beside the source, or replaces the text of the one that is open.
function M.open(source, view)
  local name = 'ptx-sass://' .. view['function']
  local buffer = vim.fn.bufnr('^' .. vim.fn.escape(name, '^$.*[]~\\') .. '$')
  if buffer < 0 then
    buffer = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(buffer, name)
    vim.bo[buffer].bufhidden = 'wipe'
  end
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(view.text, '\n'))
  vim.bo[buffer].modifiable = false
  if vim.fn.bufwinid(buffer) < 0 then
    local window = vim.api.nvim_get_current_win()
    vim.cmd('rightbelow vertical sbuffer ' .. buffer)
    vim.wo.wrap, vim.wo.number = false, false
    vim.api.nvim_set_current_win(window)
  end
  M.follow(source, buffer, view.lines)
end

-- While the cursor moves in the source, marks the machine code of its line, and the other way round.
function M.follow(source, buffer, lines)
  local function line_of(range)
    return range and range ~= vim.NIL and range.start.line or nil
  end
  local function mark(target, wanted)
    vim.api.nvim_buf_clear_namespace(target, highlight, 0, -1)
    for _, line in ipairs(wanted) do
      vim.api.nvim_buf_set_extmark(target, highlight, line, 0, { line_hl_group = 'CursorLine' })
    end
    local window = vim.fn.bufwinid(target)
    if wanted[1] and window >= 0 then
      pcall(vim.api.nvim_win_set_cursor, window, { wanted[1] + 1, 0 })
    end
  end
  local group = vim.api.nvim_create_augroup('ptx.sass.' .. buffer, {})
  vim.api.nvim_create_autocmd('CursorMoved', { group = group, buffer = source, callback = function()
    if not vim.api.nvim_buf_is_valid(buffer) then
      return true
    end
    local row, wanted = vim.api.nvim_win_get_cursor(0)[1] - 1, {}
    for i, range in ipairs(lines) do
      if line_of(range) == row then
        wanted[#wanted + 1] = i - 1
      end
    end
    mark(buffer, wanted)
  end })
  vim.api.nvim_create_autocmd('CursorMoved', { group = group, buffer = buffer, callback = function()
    local line = line_of(lines[vim.api.nvim_win_get_cursor(0)[1]])
    if vim.api.nvim_buf_is_valid(source) then
      mark(source, line and { line } or {})
    end
  end })
end

-- Shows the page of a diagnostic in a window at the cursor; called again, goes into it.
function M.explain(code)
  local buffer = vim.api.nvim_get_current_buf()
  local client = vim.lsp.get_clients({ bufnr = buffer, name = 'ptx' })[1]
  if not client then
    return vim.notify('ptx: no language server is attached to this buffer', vim.log.levels.WARN)
  end
  -- With `true` the server leaves showing the page to us.
  local params = { command = 'ptx.explain', arguments = { code, true } }
  client:request('workspace/executeCommand', params, function(err, page)
    if err then
      return vim.notify('ptx: ' .. err.message, vim.log.levels.ERROR)
    end
    vim.lsp.util.open_floating_preview(vim.split(page, '\n'), 'markdown',
      { focus_id = 'ptx.explain', border = 'rounded', max_width = 100 })
  end, buffer)
end

-- Says once what to do if the server can't be started.
local function look_for_server()
  local config = vim.lsp.config.ptx
  local command = config and type(config.cmd) == 'table' and config.cmd[1]
  if command and vim.fn.executable(command) == 0 then
    vim.notify('ptx: the language server `' .. command .. "` is not on the PATH. Build it with "
      .. '`cargo build --release --bin ptx-lsp`, or name it: '
      .. "vim.lsp.config('ptx', { cmd = { '/path/to/ptx-lsp' } })", vim.log.levels.ERROR)
  end
end

-- Registers the commands that code lenses and actions carry, and :PtxSass.
function M.setup()
  vim.filetype.add({ extension = { ptx = 'ptx' } })
  vim.lsp.commands['ptx.showSass'] = function(command)
    M.show_sass({ textDocument = { uri = command.arguments[1] }, ['function'] = command.arguments[2] })
  end
  vim.lsp.commands['ptx.explain'] = function(command)
    M.explain(command.arguments[1])
  end
  vim.api.nvim_create_user_command('PtxSass', function() M.show_sass() end, { desc = 'Show SASS for this function' })
  vim.api.nvim_create_autocmd('LspAttach', { callback = function(args)
    local client = vim.lsp.get_client_by_id(args.data.client_id)
    if client and client.name == 'ptx' then
      vim.lsp.inlay_hint.enable(true, { bufnr = args.buf })
    end
  end })
  vim.api.nvim_create_autocmd('FileType', { pattern = 'ptx', once = true, callback = look_for_server })
  vim.lsp.enable('ptx')
end

return M
