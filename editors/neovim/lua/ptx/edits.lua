-- Acts a moment after each edit and each save of a buffer.
local M = {}

-- The delay after the last keystroke or save, in milliseconds.
M.PAUSE = 150

local timers = {}

-- Calls `act` after edits and saves of a buffer, as long as `is_wanted` returns true. One buffer is followed for each
-- `purpose`.
function M.follow(purpose, buffer, is_wanted, act)
  local group = vim.api.nvim_create_augroup('ptx.' .. purpose, {})
  local timer = timers[purpose] or assert(vim.uv.new_timer())
  timers[purpose] = timer
  timer:stop()
  vim.api.nvim_create_autocmd({ 'TextChanged', 'TextChangedI', 'TextChangedP', 'BufWritePost' }, {
    group = group, buffer = buffer, callback = function()
      if not is_wanted() then
        vim.api.nvim_clear_autocmds({ group = group })
        return
      end
      timer:stop()
      timer:start(M.PAUSE, 0, vim.schedule_wrap(function()
        if vim.api.nvim_buf_is_valid(buffer) and is_wanted() then
          act()
        end
      end))
    end,
  })
end

return M
