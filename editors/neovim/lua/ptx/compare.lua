-- The machine code of a function beside that of the last save, of another target or of another option; what it takes on
-- each target; and pictures of it.
local M = {}

local sass = require('ptx.sass')

local function fail(err)
  vim.notify('ptx: ' .. err.message, vim.log.levels.ERROR)
end

-- Asks the server about the function that is shown or under the cursor.
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

-- `saved`, a target, `O0` to `O3`, or a number of registers.
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

-- A buffer that is not a file, with a text.
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

-- Shows two texts in a tab page of their own, with their differences marked.
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

-- Shows what the function takes on each target.
function M.targets()
  ask('ptx/compareTargets', {}, function(answer)
    vim.cmd('botright 20split')
    vim.api.nvim_win_set_buf(0, scratch('ptx-targets://' .. answer['function'], answer.markdown, 'markdown'))
    vim.wo.wrap = false
  end)
end

-- Shows pictures of the function in the browser, or writes them: as SVG where the name of the file says so, else as a page.
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

return M
