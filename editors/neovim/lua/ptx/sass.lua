-- The machine code of the function under the cursor, in a window beside the PTX. It follows the cursor from function
-- to function and every edit; what is older than the text is grey. The cursor in either marks lines in the other.
local M = {}

local server = require('ptx.server')
local marks = vim.api.nvim_create_namespace('ptx.sass')
local grey = vim.api.nvim_create_namespace('ptx.sass.stale')
-- Milliseconds after the last keystroke or movement.
local PAUSE = 150

-- What is shown: source, buffer, name, lines (ranges of PTX by line), tick (of the text that was compiled).
local view
local timer = assert(vim.uv.new_timer())

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

-- Marks the lines that belong together, and greys what is stale.
local function decorate()
  if not is_open() or not vim.api.nvim_buf_is_valid(view.source) then
    return
  end
  vim.api.nvim_buf_clear_namespace(view.buffer, grey, 0, -1)
  if is_stale() then
    mark(view.buffer, {})
    mark(view.source, {})
    for line = 0, vim.api.nvim_buf_line_count(view.buffer) - 1 do
      vim.api.nvim_buf_set_extmark(view.buffer, grey, line, 0, {
        end_row = line + 1, hl_group = 'Comment', hl_eol = true, priority = 250,
        virt_text = line == 0 and view.reason and { { view.reason, 'WarningMsg' } } or nil,
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

-- Asks for the machine code at a place of a buffer, and hands it on with the tick of the text at that time.
local function ask(source, place, take)
  local client = vim.lsp.get_clients({ bufnr = source, name = 'ptx' })[1]
  if not client then
    return
  end
  local tick = vim.api.nvim_buf_get_changedtick(source)
  local params = vim.tbl_extend('force', { textDocument = vim.lsp.util.make_text_document_params(source) }, place)
  client:request('ptx/sassView', params, function(err, answer)
    take(err, answer ~= vim.NIL and answer or nil, tick)
  end, source)
end

local function has_code(text)
  return text:find('^/%*') or text:find('\n/%*')
end

local function take(source, answer, tick)
  if not has_code(answer.text) and is_open() and view.has_code and view.name == answer['function'] and view.source == source then
    -- The code as it was is worth more than the reason alone.
    view.reason = vim.trim(answer.text:gsub('^// ', ''))
    return
  end
  local buffer = view and vim.api.nvim_buf_is_valid(view.buffer) and view.buffer
  if not buffer then
    buffer = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(buffer, 'ptx-sass://sass')
    vim.bo[buffer].bufhidden = 'wipe'
    vim.bo[buffer].filetype = 'ptx-sass'
  end
  view = { source = source, buffer = buffer, name = answer['function'], lines = answer.lines, tick = tick,
    has_code = has_code(answer.text) }
  local text = vim.split(answer.text:gsub('\n$', ''), '\n')
  if not vim.deep_equal(text, vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) then
    vim.bo[buffer].modifiable = true
    vim.api.nvim_buf_set_lines(buffer, 0, -1, false, text)
    vim.bo[buffer].modifiable = false
  end
  vim.b[buffer].ptx_function = view.name
end

local function refresh(source, place)
  ask(source, place, function(_, answer, tick)
    if not is_open() then
      return
    end
    if answer then
      take(source, answer, tick)
    elseif place['function'] then
      view.reason = 'there is no such function any more'
    end
    decorate()
  end)
end

local function soon(act)
  timer:stop()
  timer:start(PAUSE, 0, vim.schedule_wrap(function()
    if is_open() then
      act()
    end
  end))
end

local function position(buffer)
  local client = vim.lsp.get_clients({ bufnr = buffer, name = 'ptx' })[1]
  return client and { position = vim.lsp.util.make_position_params(0, client.offset_encoding).position }
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
  vim.api.nvim_create_autocmd({ 'TextChanged', 'TextChangedI', 'TextChangedP' }, {
    group = group, callback = function(args) edited(args.buf) end,
  })
end

-- Shows the machine code of a function by name, or of the one under the cursor.
function M.show(name)
  local source = vim.api.nvim_get_current_buf()
  if not server.client(source) then
    return
  end
  local place = name and { ['function'] = name } or position(source)
  ask(source, place, function(err, answer, tick)
    if err then
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
  end)
end

return M
