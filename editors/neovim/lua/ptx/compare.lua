-- The machine code of a function compared with its code at the last save, for another target or with another option;
-- the resources that the function uses on each target; its pictures; and its blocks.
local M = {}

local sass = require('ptx.sass')

local function fail(err)
  vim.notify('ptx: ' .. err.message, vim.log.levels.ERROR)
end

-- Asks the server about the function whose code is shown or which is under the cursor.
local function ask(method, more, take)
  local source, place = sass.place()
  local client = source and vim.lsp.get_clients({ bufnr = source, name = 'ptx' })[1]
  if not client or not place then
    return
  end
  local params = vim.tbl_extend('force', { textDocument = vim.lsp.util.make_text_document_params(source) }, place, more)
  client:request(method, params, function(err, answer)
    if err then
      fail(err)
    elseif not answer or answer == vim.NIL then
      vim.notify('ptx: the cursor is not inside a function', vim.log.levels.INFO)
    else
      take(answer, source)
    end
  end, source)
end

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

-- Shows both texts in a new tab page, with their differences marked.
function M.difference(with)
  ask('ptx/sassDifference', { with = other(with) }, function(answer)
    vim.cmd.tabnew()
    vim.bo.bufhidden = 'wipe'
    for i, side in ipairs({ answer.before, answer.after }) do
      local buffer = scratch('ptx-sass://' .. side.title, side.text, 'ptx-sass')
      if i == 2 then
        vim.cmd('rightbelow vertical split')
      end
      vim.api.nvim_win_set_buf(0, buffer)
      vim.wo.winbar = side.title:gsub('%%', '%%%%')
      vim.cmd.diffthis()
    end
    vim.notify(('ptx: %s: %s'):format(answer['function'], answer.summary))
  end)
end

-- Shows the resources that the function uses on each target.
function M.targets()
  ask('ptx/compareTargets', {}, function(answer)
    vim.cmd('botright 20split')
    vim.api.nvim_win_set_buf(0, scratch('ptx-targets://' .. answer['function'], answer.markdown, 'markdown'))
    vim.wo.wrap = false
  end)
end

-- Shows pictures of the function in the browser, or writes them to a file: an SVG if its name ends in .svg, else HTML.
function M.pictures(file)
  ask('ptx/pictures', {}, function(answer)
    local path = file ~= '' and vim.fn.fnamemodify(file, ':p') or vim.fn.tempname() .. '.html'
    local text = path:match('%.svg$') and answer.svg or answer.html
    local out, why = io.open(path, 'w')
    if not out then
      return fail({ message = why })
    end
    out:write(text)
    out:close()
    if file == '' then
      vim.ui.open(path)
    else
      vim.notify('ptx: wrote ' .. path)
    end
  end)
end

-- Lists the blocks of the control flow of the function; <CR> goes to the first line of one.
function M.blocks()
  ask('ptx/pictures', {}, function(answer, source)
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
