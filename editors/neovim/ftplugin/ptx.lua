vim.bo.commentstring = '// %s'
vim.bo.comments = 's1:/*,mb:*,ex:*/,://'
-- A line broken inside a comment, and the line after one, start with `//`; text is not wrapped.
vim.opt_local.formatoptions:remove('t')
vim.opt_local.formatoptions:append('crql')
vim.b.undo_ftplugin = 'setlocal commentstring< comments< formatoptions<'
