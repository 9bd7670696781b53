-- `K` shows what the word of machine code under the cursor means.
vim.keymap.set('n', 'K', function() require('ptx.explain').here() end,
  { buffer = 0, desc = 'Show what this word of machine code means' })
vim.b.undo_ftplugin = (vim.b.undo_ftplugin and vim.b.undo_ftplugin .. ' | ' or '') .. 'silent! nunmap <buffer> K'
