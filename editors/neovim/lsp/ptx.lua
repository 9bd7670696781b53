-- Neovim >= 0.11: vim.lsp.enable('ptx') starts the server for PTX files.
return {
  cmd = { 'ptx-lsp' },
  filetypes = { 'ptx' },
  root_markers = { '.git' },
  init_options = { inlayHints = true, codeLens = true, compile = true },
}
