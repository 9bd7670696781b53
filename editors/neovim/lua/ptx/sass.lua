-- The machine code of the function under the cursor, or its text after a stage of the compiler, in a window beside the
-- PTX. The view follows the cursor from function to function and is updated after every edit; outdated code is gray. The
-- cursor in one window marks the matching lines in the other. In machine code, cells beside each instruction show its
-- live registers and its stall cycles; higher figures are redder. `<CR>` or `gd` goes to the PTX.
local M = {}

local server = require('ptx.server')
local marks = vim.api.nvim_create_namespace('ptx.sass')
local grey = vim.api.nvim_create_namespace('ptx.sass.stale')
local notes = vim.api.nvim_create_namespace('ptx.sass.notes')
-- The delay after the last keystroke or cursor movement, in milliseconds.
local PAUSE = require('ptx.edits').PAUSE

-- The state of the view: source, buffer, name, lines (PTX range of each line), heat (live registers and stall cycles of
-- each line), tick (of the text that was compiled), stage, reason (why the code is outdated), difference (from the last save).
local view
-- How control words are shown: codes, words or hidden.
local controls = 'codes'
-- The stage of the compiler that is shown instead of the machine code.
local stage
local timer = assert(vim.uv.new_timer())
-- The number of requests sent. Only the answer to the last one is used.
local asked = 0

local function is_open()
  return view and vim.api.nvim_buf_is_valid(view.buffer) and vim.fn.bufwinid(view.buffer) >= 0
end

local function is_stale()
  return vim.api.nvim_buf_get_changedtick(view.source) ~= view.tick
end

local function mark(buffer, lines, scrolls)
  vim.api.nvim_buf_clear_namespace(buffer, marks, 0, -1)
  local count = vim.api.nvim_buf_line_count(buffer)
  for _, line in ipairs(lines) do
    if line < count then
      vim.api.nvim_buf_set_extmark(buffer, marks, line, 0, { line_hl_group = 'Visual' })
    end
  end
  local window = vim.fn.bufwinid(buffer)
  if scrolls and lines[1] and window >= 0 then
    pcall(vim.api.nvim_win_set_cursor, window, { lines[1] + 1, 0 })
  end
end

-- The position of the cursor in a PTX buffer, as a request parameter.
local function position(buffer)
  local client = vim.lsp.get_clients({ bufnr = buffer, name = 'ptx' })[1]
  return client and { position = vim.lsp.util.make_position_params(0, client.offset_encoding).position }
end

function M.place()
  local here = vim.api.nvim_get_current_buf()
  if view and here == view.buffer then
    return view.source, { ['function'] = view.name }
  end
  if not server.of_ptx(here) then
    return
  end
  return here, position(here)
end

local function note()
  vim.api.nvim_buf_clear_namespace(view.buffer, notes, 0, -1)
  local text = is_stale() and view.reason or not is_stale() and view.difference
  if text then
    vim.api.nvim_buf_set_extmark(view.buffer, notes, 0, 0, { virt_text = { { '  ' .. text, 'WarningMsg' } } })
  end
end

-- Marks the lines that correspond to the cursor's line, and grays outdated code.
local function decorate()
  if not is_open() or not vim.api.nvim_buf_is_valid(view.source) then
    return
  end
  vim.api.nvim_buf_clear_namespace(view.buffer, grey, 0, -1)
  note()
  if view.drawn_stale ~= is_stale() then
    view.drawn_stale = is_stale()
    require('ptx.heat').draw(view.buffer, view.heat, view.drawn_stale)
  end
  if is_stale() then
    mark(view.buffer, {})
    mark(view.source, {})
    for line = 0, vim.api.nvim_buf_line_count(view.buffer) - 1 do
      vim.api.nvim_buf_set_extmark(view.buffer, grey, line, 0, {
        end_row = line + 1, hl_group = 'Comment', hl_eol = true, priority = 250,
      })
    end
    return
  end
  local here = vim.api.nvim_get_current_buf()
  if here == view.buffer then
    local range = view.lines[vim.api.nvim_win_get_cursor(0)[1]]
    local own, together = {}, {}
    if range and range ~= vim.NIL then
      for line = range.start.line, range['end'].line do
        own[#own + 1] = line
      end
      for i, other in ipairs(view.lines) do
        if other ~= vim.NIL and other.start.line == range.start.line then
          together[#together + 1] = i - 1
        end
      end
    end
    mark(view.source, own, true)
    mark(view.buffer, together)
  else
    local window = vim.fn.bufwinid(view.source)
    local row = window >= 0 and vim.api.nvim_win_get_cursor(window)[1] - 1
    local own = {}
    for i, range in ipairs(view.lines) do
      if row and range ~= vim.NIL and range.start.line <= row and row <= range['end'].line then
        own[#own + 1] = i - 1
      end
    end
    mark(view.buffer, own, true)
    mark(view.source, #own > 0 and { row } or {})
  end
end

-- Requests the machine code for a place in a buffer. `take` gets the answer and the tick at the time of the request.
local function ask(source, place, take)
  local client = vim.lsp.get_clients({ bufnr = source, name = 'ptx' })[1]
  if not client then
    return
  end
  local tick = vim.api.nvim_buf_get_changedtick(source)
  asked = asked + 1
  local own = asked
  local params = vim.tbl_extend('force', {
    textDocument = vim.lsp.util.make_text_document_params(source), controls = controls, live = false, stage = stage,
  }, place)
  client:request('ptx/sassView', params, function(err, answer)
    if own == asked then
      take(err, answer ~= vim.NIL and answer or nil, tick)
    end
  end, source)
end

local function take(source, answer, tick)
  local is_same = is_open() and view.name == answer['function'] and view.source == source and view.stage == stage
  if not answer.hasCode and is_same and view.has_code then
    -- Keep the old code: it is more useful than the reason alone.
    view.reason = vim.trim(vim.split(answer.text, '\n')[1]:gsub('^// ', ''))
    return
  end
  local buffer = view and vim.api.nvim_buf_is_valid(view.buffer) and view.buffer
  if not buffer then
    buffer = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(buffer, 'ptx-sass://sass')
    vim.bo[buffer].bufhidden = 'wipe'
    vim.bo[buffer].filetype = 'ptx-sass'
    for _, keys in ipairs({ '<CR>', 'gd' }) do
      vim.keymap.set('n', keys, M.go_to_source, { buffer = buffer, desc = 'Go to the PTX of this line' })
    end
  end
  view = { source = source, buffer = buffer, name = answer['function'], lines = answer.lines, heat = answer.heat,
    tick = tick, has_code = answer.hasCode, stage = stage }
  local text = vim.split(answer.text:gsub('\n$', ''), '\n')
  if not vim.deep_equal(text, vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) then
    vim.bo[buffer].modifiable = true
    vim.api.nvim_buf_set_lines(buffer, 0, -1, false, text)
    vim.bo[buffer].modifiable = false
  end
  vim.b[buffer].ptx_function = view.name
end

-- Shows in the first line what has changed since the last save.
local function compare_with_saved()
  local shown = view
  if stage or not shown.has_code or not vim.bo[shown.source].modified then
    return
  end
  local client = vim.lsp.get_clients({ bufnr = shown.source, name = 'ptx' })[1]
  local params = { textDocument = vim.lsp.util.make_text_document_params(shown.source), ['function'] = shown.name,
    with = { saved = true } }
  local _ = client and client:request('ptx/sassDifference', params, function(_, answer)
    if view == shown and answer and answer ~= vim.NIL and is_open() then
      shown.difference = answer.summary .. ' since the last save'
      note()
    end
  end, shown.source)
end

-- Goes to the PTX statement that the line under the cursor comes from.
function M.go_to_source()
  local range = view and view.lines[vim.api.nvim_win_get_cursor(0)[1]]
  local window = view and vim.fn.bufwinid(view.source) or -1
  if not range or range == vim.NIL or window < 0 then
    return
  end
  vim.api.nvim_set_current_win(window)
  vim.cmd("normal! m'")
  vim.api.nvim_win_set_cursor(window, { range.start.line + 1, range.start.character })
end

local soon

local function refresh(source, place)
  ask(source, place, function(err, answer, tick)
    if not is_open() then
      return
    end
    if err and err.code == vim.lsp.protocol.ErrorCodes.ContentModified then
      -- This text or another one changed while the server worked, which cancelled the request.
      return soon(function() refresh(source, place) end)
    end
    if answer then
      take(source, answer, tick)
      compare_with_saved()
    elseif place['function'] then
      view.reason = 'the function no longer exists'
    end
    decorate()
  end)
end

function soon(act)
  timer:stop()
  timer:start(PAUSE, 0, vim.schedule_wrap(function()
    if is_open() then
      act()
    end
  end))
end

local function moved()
  if not is_open() then
    return
  end
  decorate()
  local here = vim.api.nvim_get_current_buf()
  if vim.bo[here].filetype ~= 'ptx' then
    return
  end
  local row, first, last = vim.api.nvim_win_get_cursor(0)[1] - 1, math.huge, -1
  for _, range in ipairs(view.lines) do
    if range ~= vim.NIL then
      first, last = math.min(first, range.start.line), math.max(last, range['end'].line)
    end
  end
  if here ~= view.source or (not is_stale() and (row < first or row > last)) then
    soon(function()
      local place = vim.api.nvim_get_current_buf() == here and position(here)
      if place then
        refresh(here, place)
      end
    end)
  end
end

local function edited(buffer)
  if is_open() and buffer == view.source then
    decorate()
    local source, name = view.source, view.name
    soon(function() refresh(source, { ['function'] = name }) end)
  end
end

local function follow()
  local group = vim.api.nvim_create_augroup('ptx.sass', {})
  vim.api.nvim_create_autocmd({ 'CursorMoved', 'CursorMovedI', 'BufEnter' }, { group = group, callback = moved })
  vim.api.nvim_create_autocmd({ 'TextChanged', 'TextChangedI', 'TextChangedP', 'BufWritePost' }, {
    group = group, callback = function(args) edited(args.buf) end,
  })
end

local function open(source, place)
  ask(source, place, function(err, answer, tick)
    if err then
      -- There may be no such stage.
      stage = nil
      return vim.notify('ptx: ' .. err.message, vim.log.levels.ERROR)
    elseif not answer then
      return vim.notify('ptx: the cursor is not inside a function', vim.log.levels.INFO)
    end
    take(source, answer, tick)
    if vim.fn.bufwinid(view.buffer) < 0 then
      local window = vim.api.nvim_get_current_win()
      vim.cmd('rightbelow vertical sbuffer ' .. view.buffer)
      vim.wo.wrap, vim.wo.number, vim.wo.relativenumber = false, false, false
      vim.wo.foldmethod, vim.wo.foldenable = 'expr', false
      -- Each line of PTX folds the machine code below it.
      vim.wo.foldexpr = [[getline(v:lnum) =~# '^//' ? '>1' : 1]]
      vim.api.nvim_set_current_win(window)
    end
    follow()
    decorate()
    compare_with_saved()
  end)
end

-- Shows the machine code of a function by name, or of the one under the cursor.
function M.show(name)
  local source, place = vim.api.nvim_get_current_buf(), { ['function'] = name }
  if not name then
    source, place = M.place()
  elseif not server.of_ptx(source) then
    return
  end
  if source and place then
    stage = nil
    open(source, place)
  end
end

-- Shows the function under the cursor after a stage of the compiler. Without a name, asks for the stage.
function M.show_stage(name)
  local source, place = M.place()
  if not source or not place then
    return
  end
  local function take(chosen)
    if chosen then
      stage = chosen
      open(source, place)
    end
  end
  if name then
    return take(name)
  end
  local client = vim.lsp.get_clients({ bufnr = source, name = 'ptx' })[1]
  client:request('ptx/stages', vim.empty_dict(), function(err, all)
    if err then
      return vim.notify('ptx: ' .. err.message, vim.log.levels.ERROR)
    end
    vim.ui.select(all, { prompt = 'Show the function after', kind = 'ptx.stage',
      format_item = function(one) return one.name .. ': ' .. one.about end }, function(one)
      take(one and one.name)
    end)
  end, source)
end

-- The names of the stages that start with a text.
function M.stages(start)
  local client = vim.lsp.get_clients({ name = 'ptx' })[1]
  local answer = client and client:request_sync('ptx/stages', vim.empty_dict(), 2000)
  local names = vim.tbl_map(function(one) return one.name end, answer and answer.result or {})
  return vim.tbl_filter(function(name) return vim.startswith(name:lower(), start:lower()) end, names)
end

-- Shows control words as a column of codes, in words, or not at all. Without a name, switches to the next of these.
function M.show_controls(name)
  local all = { 'codes', 'words', 'hidden' }
  if name and not vim.tbl_contains(all, name) then
    return vim.notify('ptx: control words are shown as ' .. table.concat(all, ', '), vim.log.levels.ERROR)
  end
  controls = name or all[vim.fn.index(all, controls) + 2] or all[1]
  if is_open() then
    refresh(view.source, { ['function'] = view.name })
  end
end

return M
