-- Neovim >= 0.11: vim.lsp.enable('ptx') starts the server for PTX files.
return {
  cmd = { 'ptx-lsp' },
  filetypes = { 'ptx' },
  root_markers = { 'ptx-check.toml', '.git' },
  init_options = { inlayHints = true, codeLens = true, compile = true },
  on_exit = function(code, signal)
    require('ptx.server').ended(code, signal)
  end,
}
