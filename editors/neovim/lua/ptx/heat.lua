-- Cells before the instructions show live registers and stall cycles; higher figures are redder.
local M = {}

local cells = vim.api.nvim_create_namespace('ptx.sass.heat')
-- The number of shades of red, not counting "no color".
local STEPS = 6
local BLANK = (' '):rep(9)

-- Defines the shades, from the background color to red.
local function set_colors()
  local normal = vim.api.nvim_get_hl(0, { name = 'Normal', link = false })
  local paper = normal.bg or (vim.o.background == 'dark' and 0x14161b or 0xffffff)
  local function part(shift)
    return bit.band(bit.rshift(paper, shift), 0xff)
  end
  for step = 1, STEPS do
    local share = 0.6 * step / STEPS
    local function mix(shift, target)
      return math.floor(part(shift) * (1 - share) + target * share)
    end
    local color = ('#%02x%02x%02x'):format(mix(16, 0xe0), mix(8, 0x30), mix(0, 0x28))
    vim.api.nvim_set_hl(0, 'PtxHeat' .. step, { bg = color, ctermbg = 'DarkRed', default = true })
  end
end

vim.api.nvim_create_autocmd('ColorScheme', { callback = set_colors })
set_colors()

local function group(value, most)
  local step = math.floor(STEPS * value / most + 0.5)
  return step > 0 and 'PtxHeat' .. step or nil
end

-- Draws the cells of a buffer's lines. Lines without an instruction get blanks. Stale cells have no color.
function M.draw(buffer, heat, is_stale)
  vim.api.nvim_buf_clear_namespace(buffer, cells, 0, -1)
  local live, stall = 1, 1
  for _, figures in ipairs(heat) do
    if figures ~= vim.NIL then
      live, stall = math.max(live, figures[1]), math.max(stall, figures[2])
    end
  end
  local count = vim.api.nvim_buf_line_count(buffer)
  for line, figures in ipairs(heat) do
    if line <= count then
      local text = { { BLANK } }
      if figures ~= vim.NIL then
        text = {
          { (' %3d '):format(figures[1]), is_stale and 'Comment' or group(figures[1], live) },
          { (' %2d'):format(figures[2]), is_stale and 'Comment' or group(figures[2], stall) },
          { ' ' },
        }
      end
      vim.api.nvim_buf_set_extmark(buffer, cells, line - 1, 0, { virt_text = text, virt_text_pos = 'inline' })
    end
  end
end

return M
