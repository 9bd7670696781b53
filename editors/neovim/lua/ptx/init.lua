-- The parts of the client that Neovim lacks: the machine code of a function in a window beside the PTX, comparisons and
-- pictures of this code, the pages of diagnostics, and advice for a missing server.
local M = {}

local server = require('ptx.server')

-- Shows the machine code of the function under the cursor.
function M.show_sass(name)
  require('ptx.sass').show(name)
end

-- Shows the page of a diagnostic in a floating window at the cursor. A second call moves the cursor into this window.
function M.explain(code)
  local buffer = vim.api.nvim_get_current_buf()
  local client = server.client(buffer)
  if not client then
    return
  end
  require('ptx.explain').show(client, buffer, code)
end

-- Highlight groups for server tokens that have no color in Neovim, as in syntax/ptx.vim.
local COLOURS = {
  keyword = 'PreProc', ['function'] = 'Statement', modifier = 'Special', type = 'Type', variable = 'Identifier',
  predicate = 'Conditional', enumMember = 'Constant', method = 'Function', label = 'Label',
}

local function set_colors()
  for kind, group in pairs(COLOURS) do
    vim.api.nvim_set_hl(0, ('@lsp.type.%s.ptx'):format(kind), { link = group, default = true })
  end
end

-- Shows the code lenses of a buffer and keeps them up to date.
local function show_lenses(buffer)
  if vim.lsp.codelens.enable then
    return vim.lsp.codelens.enable(true, { bufnr = buffer })
  end
  -- Neovim 0.11 only requests lenses when it is told to.
  local function refresh()
    vim.lsp.codelens.refresh({ bufnr = buffer })
  end
  local group = vim.api.nvim_create_augroup('ptx.lenses', { clear = false })
  vim.api.nvim_clear_autocmds({ group = group, buffer = buffer })
  vim.api.nvim_create_autocmd({ 'BufEnter', 'BufWritePost', 'TextChanged', 'InsertLeave' },
    { group = group, buffer = buffer, callback = refresh })
  refresh()
end

-- Folds a buffer in its windows as the server says. All folds are open at first.
local function fold(buffer)
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
    local options = vim.wo[window][0]
    options.foldmethod, options.foldexpr, options.foldlevel = 'expr', 'v:lua.vim.lsp.foldexpr()', 99
  end
end

-- Turns on what the server does for a buffer and Neovim does not do by itself.
local function attached(client, buffer, options)
  vim.lsp.inlay_hint.enable(true, { bufnr = buffer })
  show_lenses(buffer)
  if options.folding then
    fold(buffer)
  end
  -- Neovim 0.11 lacks these modules.
  for option, module in pairs({ linked_editing = 'linked_editing_range', format_on_type = 'on_type_formatting' }) do
    if options[option] and vim.fn.has('nvim-0.12') == 1 then
      vim.lsp[module].enable(true, { client_id = client.id })
    end
  end
end

-- Registers the commands of code lenses and code actions, registers the user commands, and enables the server.
-- `embedded = false` disables the support of PTX inside other languages. `folding`, `linked_editing` and
-- `format_on_type` turn on these features.
function M.setup(options)
  options = options or {}
  vim.filetype.add({ extension = { ptx = 'ptx' } })
  vim.lsp.commands['ptx.showSass'] = function(command)
    M.show_sass(command.arguments[2])
  end
  vim.lsp.commands['ptx.explain'] = function(command)
    M.explain(command.arguments[1])
  end
  vim.lsp.commands['ptx.showReferences'] = function(command, context)
    local client = assert(vim.lsp.get_client_by_id(context.client_id))
    local items = vim.lsp.util.locations_to_items(command.arguments[3], client.offset_encoding)
    vim.fn.setqflist({}, ' ', { title = command.title, items = items })
    vim.cmd('botright copen')
  end
  vim.lsp.commands['ptx.showReference'] = function(command)
    require('ptx.reference').show(command.arguments[2])
  end
  vim.api.nvim_create_user_command('PtxSass', function() M.show_sass() end, { desc = 'Show SASS for this function' })
  vim.api.nvim_create_user_command('PtxStage', function(args)
    require('ptx.sass').show_stage(args.fargs[1])
  end, { nargs = '?', desc = 'Show this function after a stage of the compiler',
    complete = function(start) return require('ptx.sass').stages(start) end })
  vim.api.nvim_create_user_command('PtxSassControls', function(args)
    require('ptx.sass').show_controls(args.fargs[1])
  end, { nargs = '?', desc = 'Show control words as codes, in words or not',
    complete = function() return { 'codes', 'words', 'hidden' } end })
  vim.api.nvim_create_user_command('PtxSassDiff', function(args)
    require('ptx.compare').difference(args.args)
  end, { nargs = '?', desc = 'Compare SASS with the last save, a target (sm_90), a level (O0) or a number of registers',
    complete = function() return { 'saved', 'O0', 'O1', 'O2', 'O3', 'sm_75', 'sm_80', 'sm_90', 'sm_100', 'sm_120' } end })
  vim.api.nvim_create_user_command('PtxTargets', function()
    require('ptx.compare').targets()
  end, { desc = 'Compare targets' })
  vim.api.nvim_create_user_command('PtxReasons', function()
    require('ptx.compare').reasons()
  end, { desc = 'Explain the registers, spills and loops of this function' })
  vim.api.nvim_create_user_command('PtxPictures', function(args)
    require('ptx.pictures').show(args.args)
  end, { nargs = '?', complete = 'file', desc = 'Show pictures of this function, or write them to a file' })
  vim.api.nvim_create_user_command('PtxBlocks', function()
    require('ptx.compare').blocks()
  end, { desc = 'List the blocks of the control flow of this function' })
  vim.api.nvim_create_user_command('PtxRestart', server.restart, { desc = 'Restart the language server' })
  require('ptx.images').setup()
  set_colors()
  vim.api.nvim_create_autocmd('ColorScheme', { callback = set_colors })
  vim.api.nvim_create_autocmd('LspAttach', { callback = function(args)
    local client = vim.lsp.get_client_by_id(args.data.client_id)
    if client and client.name == 'ptx' then
      attached(client, args.buf, options)
    end
  end })
  vim.api.nvim_create_autocmd('FileType', { pattern = 'ptx', once = true, callback = server.look })
  vim.lsp.enable('ptx')
  if options.embedded ~= false then
    server.enable_embedded()
  end
end

return M
