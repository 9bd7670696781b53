-- Compares syntax/ptx.vim with the server's semantic tokens, token by token, on PTX of the repository.
local MAY_BE = {
  comment = { 'Comment' }, keyword = { 'Directive', 'Section' }, ['function'] = { 'Mnemonic' }, modifier = { 'Modifier' },
  type = { 'Type', 'ModifierType' }, variable = { 'Register', 'Predicate', 'Name', 'Guard' },
  predicate = { 'Predicate', 'Register', 'Guard', 'Name' }, enumMember = { 'Special', 'Component' },
  parameter = { 'Name', 'Register' }, method = { 'Function', 'Name', 'Label' }, label = { 'Label', 'Name' },
  number = { 'Number', 'Float' }, string = { 'String' },
}

local ok, failure = pcall(function()
  local count, wrong = 0, {}
  for _, path in ipairs(vim.split(vim.env.FILES, ' ')) do
    vim.cmd.edit(vim.fn.fnameescape(path))
    local buffer = vim.api.nvim_get_current_buf()
    assert(vim.b[buffer].ptx_analyzer_syntax == 1, 'another syntax than ours')
    assert(vim.bo[buffer].commentstring == '// %s', vim.bo[buffer].commentstring)
    assert(vim.wait(20000, function()
      local client = vim.lsp.get_clients({ bufnr = buffer, name = 'ptx' })[1]
      return client and client.initialized
    end, 20), 'no client')
    local client = vim.lsp.get_clients({ bufnr = buffer, name = 'ptx' })[1]
    local params = { textDocument = vim.lsp.util.make_text_document_params(buffer) }
    local data = client:request_sync('textDocument/semanticTokens/full', params, 20000, buffer).result.data
    local types = client.server_capabilities.semanticTokensProvider.legend.tokenTypes
    local line, column = 0, 0
    for i = 1, #data, 5 do
      column = data[i] > 0 and data[i + 1] or column + data[i + 1]
      line = line + data[i]
      local kind = types[data[i + 3] + 1]
      for _, at in ipairs({ column + 1, column + data[i + 2] }) do
        local group = vim.fn.synIDattr(vim.fn.synID(line + 1, at, 1), 'name'):gsub('^ptx', '')
        if not vim.tbl_contains(MAY_BE[kind], group) then
          local word = vim.fn.getline(line + 1):sub(column + 1, column + data[i + 2])
          wrong[#wrong + 1] = ('%s:%d:%d: %s %s is %s'):format(path, line + 1, column + 1, kind, word, group)
          break
        end
      end
      count = count + 1
    end
    vim.cmd('bwipeout!')
  end
  io.stdout:write(('colors: %d tokens, %d otherwise than the server says\n'):format(count, #wrong))
  -- A Neovim that leaves while its server ends may die of SIGPIPE on a slow machine.
  for _, client in ipairs(vim.lsp.get_clients()) do
    client:stop()
  end
  vim.wait(20000, function() return #vim.lsp.get_clients() == 0 end, 20)
  assert(#wrong == 0, table.concat(wrong, '\n', 1, math.min(#wrong, 30)))
end)
if not ok then
  io.stdout:write('FAIL ', tostring(failure), '\n')
  vim.cmd('cquit 1')
end
vim.cmd('qa!')
