-- PTX inside other languages, beside their own servers: nothing is announced that would compete with those.
return {
  cmd = { 'ptx-lsp' },
  filetypes = { 'cuda', 'cpp', 'c', 'rust', 'python' },
  root_markers = { 'ptx-check.toml', '.git' },
  init_options = { embeddedOnly = true },
  on_exit = function(code, signal)
    require('ptx.server').ended(code, signal)
  end,
}
