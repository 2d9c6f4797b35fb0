-- Neovim 0.11 and newer: errors, completion, hover, renaming and formatting for .df files, from `dfc lsp`.
-- Put this file into ~/.config/nvim/plugin/, or load it in init.lua: dofile("/path/to/dfc.lua").
-- Another program than the `dfc` on the path: vim.g.dfc_path = "/path/to/dfc" before it is loaded.

vim.filetype.add({ extension = { df = "df" } })

vim.lsp.config("dfc", {
  cmd = { vim.g.dfc_path or "dfc", "lsp", "--stdio" },
  filetypes = { "df" },
  root_markers = { ".git" },
})
vim.lsp.enable("dfc")

vim.api.nvim_create_autocmd("FileType", {
  pattern = "df",
  callback = function()
    vim.bo.commentstring = "// %s"
    vim.bo.expandtab = true
    vim.bo.shiftwidth = 4
    -- Colours come from the server's semantic tokens; these are there before it answers.
    vim.cmd([[
      syntax keyword dfKeyword and or not in is between like matches as if then else match div
      syntax keyword dfConstant true false null
      syntax match dfItem /^\s*\%(native\s\+\)\?\%(job\|param\|const\|record\|source\|stream\|sink\|fn\|operator\|use\|shuffle\|agg\)\>/
      syntax match dfNumber /\<\d[0-9_]*\%(\.\d[0-9_]*\)\?\w*\|@[0-9T:.Z+-]\+/
      syntax region dfString start=/"/ skip=/\\./ end=/"\|$/
      syntax region dfString start=/"""/ end=/"""/
      syntax match dfComment +//.*$+
      highlight default link dfKeyword Keyword
      highlight default link dfConstant Constant
      highlight default link dfItem Statement
      highlight default link dfNumber Number
      highlight default link dfString String
      highlight default link dfComment Comment
    ]])
  end,
})

vim.api.nvim_create_autocmd("LspAttach", {
  callback = function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if not client or client.name ~= "dfc" then
      return
    end
    vim.lsp.completion.enable(true, client.id, event.buf, { autotrigger = true })
    vim.lsp.inlay_hint.enable(true, { bufnr = event.buf })
    vim.api.nvim_create_autocmd("BufWritePre", {
      buffer = event.buf,
      callback = function()
        vim.lsp.buf.format({ bufnr = event.buf, id = client.id, timeout_ms = 1000 })
      end,
    })
  end,
})
