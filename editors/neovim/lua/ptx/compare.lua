-- The machine code of a function compared with its code at the last save, for another target or with another option;
-- the resources that the function uses on each target; and its blocks. A comparison is updated after each edit and save.
local M = {}

local ask = require('ptx.ask')

-- Parses the other side of a comparison: `saved`, a target, `O0` to `O3`, or a number of registers.
local function other(text)
  if text == '' or text == 'saved' then
    return { saved = true }
  elseif text:match('^[oO]%d$') then
    return { optLevel = tonumber(text:sub(2)) }
  elseif text:match('^%d+$') then
    return { maxRegisters = tonumber(text) }
  end
  return { target = text }
end

-- Creates a buffer that has a text but no file.
local function scratch(name, text, filetype)
  local old = vim.fn.bufnr('^' .. vim.fn.escape(name, '[]*?') .. '$')
  if old >= 0 then
    vim.api.nvim_buf_delete(old, { force = true })
  end
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buffer, name)
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(text:gsub('\n$', ''), '\n'))
  vim.bo[buffer].bufhidden = 'wipe'
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].filetype = filetype
  return buffer
end

-- Replaces the text of a buffer if it changes.
local function fill(buffer, text)
  local lines = vim.split(text:gsub('\n$', ''), '\n')
  if not vim.deep_equal(lines, vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) then
    vim.bo[buffer].modifiable = true
    vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
    vim.bo[buffer].modifiable = false
  end
end

-- Shows both texts in a new tab page, with their differences marked and summarized above the second.
function M.difference(with)
  with = other(with)
  ask.here('ptx/sassDifference', { with = with }, function(answer, source)
    vim.cmd.tabnew()
    vim.bo.bufhidden = 'wipe'
    local windows, buffers = {}, {}
    for i, side in ipairs({ answer.before, answer.after }) do
      if i == 2 then
        vim.cmd('rightbelow vertical split')
      end
      buffers[i], windows[i] = scratch('ptx-sass://' .. side.title, side.text, 'ptx-sass'), vim.api.nvim_get_current_win()
      vim.api.nvim_win_set_buf(0, buffers[i])
      vim.cmd.diffthis()
    end
    local function show(now)
      for i, side in ipairs({ now.before, now.after }) do
        fill(buffers[i], side.text)
        local title = i == 2 and ('%s: %s'):format(side.title, now.summary) or side.title
        vim.wo[windows[i]].winbar = title:gsub('%%', '%%%%')
      end
      vim.api.nvim_win_call(windows[2], vim.cmd.diffupdate)
    end
    show(answer)
    vim.notify(('ptx: %s: %s'):format(answer['function'], answer.summary))
    local function is_open()
      return vim.iter(windows):all(vim.api.nvim_win_is_valid) and vim.iter(buffers):all(vim.api.nvim_buf_is_valid)
    end
    local params = { ['function'] = answer['function'], with = with }
    ask.follow('difference', source, is_open, 'ptx/sassDifference', params, show)
  end)
end

-- Shows a page of Markdown about the function.
local function page(request, name)
  ask.here(request, {}, function(answer)
    vim.cmd('botright 20split')
    vim.api.nvim_win_set_buf(0, scratch(name .. answer['function'], answer.markdown, 'markdown'))
    vim.wo.wrap = false
  end)
end

-- Shows the resources that the function uses on each target.
function M.targets()
  page('ptx/compareTargets', 'ptx-targets://')
end

-- Explains the registers, spills and loops of the function.
function M.reasons()
  page('ptx/reasons', 'ptx-reasons://')
end

-- Lists the blocks of the control flow of the function; <CR> goes to the first line of one.
function M.blocks()
  ask.here('ptx/pictures', {}, function(answer, source)
    local texts = vim.tbl_map(function(block) return block.text end, answer.blocks)
    if #texts == 0 then
      return vim.notify('ptx: `' .. answer['function'] .. '` is not compiled', vim.log.levels.INFO)
    end
    local window = vim.api.nvim_get_current_win()
    local buffer = scratch('ptx-blocks://' .. answer['function'], table.concat(texts, '\n'), '')
    vim.cmd(('botright %dsplit'):format(math.min(#texts, 20)))
    vim.api.nvim_win_set_buf(0, buffer)
    vim.wo.wrap = false
    vim.keymap.set('n', '<CR>', function()
      local line = answer.blocks[vim.fn.line('.')].line
      if type(line) ~= 'number' then
        return vim.notify('ptx: no line of this file belongs to the block', vim.log.levels.INFO)
      end
      local shown = vim.fn.bufwinid(source)
      vim.api.nvim_set_current_win(shown >= 0 and shown or window)
      vim.api.nvim_set_current_buf(source)
      vim.cmd("normal! m'")
      vim.api.nvim_win_set_cursor(0, { math.min(line, vim.api.nvim_buf_line_count(source)), 0 })
    end, { buffer = buffer, desc = 'Go to the first line of the block' })
  end)
end

return M
