-- Pictures of a function: in the browser, where the page follows the edits, or in a file.
local M = {}

local ask = require('ptx.ask')

-- Loads the page again when a file beside it states another version. It stops when this file no longer exists.
local SCRIPT = [[<script nonce="%s">
function look() {
  const script = document.createElement('script');
  script.onload = () => { script.remove(); version === %d ? setTimeout(look, 500) : location.reload(); };
  script.src = '%s?' + Date.now();
  document.head.append(script);
}
look();
</script>
]]

-- The page in the browser: path, version, last (the latest pictures of the function).
local page

-- Writes a file. Tells the user if this fails.
local function write(path, text)
  local out, why = io.open(path, 'w')
  if not out then
    vim.notify('ptx: ' .. why, vim.log.levels.ERROR)
    return false
  end
  out:write(text)
  out:close()
  return true
end

-- Puts a text before or after the first place of another.
local function insert(text, place, before, after)
  local from, to = text:find(place, 1, true)
  return from and text:sub(1, from - 1) .. before .. place .. after .. text:sub(to + 1) or text
end

-- Pictures of an earlier text, pale and with the reason why there are no current ones.
local function stale(html, reason)
  local escaped = reason:gsub('[&<>]', { ['&'] = '&amp;', ['<'] = '&lt;', ['>'] = '&gt;' })
  local pale = ('<p style="color:var(--mark)">%s</p><div style="opacity:.45">'):format(escaped)
  return insert(insert(html, '<body>', '', pale), '</body>', '</div>', '')
end

local function show(answer)
  page.version = page.version + 1
  if not answer.reason then
    page.last = answer.html
  end
  local html = answer.reason and page.last and stale(page.last, answer.reason) or answer.html
  local nonce = vim.fn.sha256(vim.uv.random(32))
  local name = vim.fs.basename(page.path) .. '.js'
  -- The page allows no script but this one, and those that it loads.
  html = insert(html, "default-src 'none';", '', (" script-src 'nonce-%s' 'strict-dynamic';"):format(nonce))
  html = insert(html, '</body>', SCRIPT:format(nonce, page.version, name), '')
  return write(page.path, html) and write(page.path .. '.js', ('version = %d;\n'):format(page.version))
end

-- Shows pictures of the function in the browser, or writes them to a file: an SVG if its name ends in .svg, else HTML.
function M.show(file)
  ask.here('ptx/pictures', {}, function(answer, source)
    if file ~= '' then
      local path = vim.fn.fnamemodify(file, ':p')
      if write(path, path:match('%.svg$') and answer.svg or answer.html) then
        vim.notify('ptx: wrote ' .. path)
      end
      return
    end
    local own = { path = vim.fn.tempname() .. '.html', version = 0 }
    page = own
    if not show(answer) then
      return
    end
    vim.ui.open(page.path)
    local function is_shown()
      return page == own
    end
    ask.follow('pictures', source, is_shown, 'ptx/pictures', { ['function'] = answer['function'] }, show)
  end)
end

return M
