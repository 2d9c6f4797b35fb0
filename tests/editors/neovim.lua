-- Run by the tests in a headless Neovim: the set-up of editors/neovim starts the server, shows a mistake, loses it when it is
-- mended, and formats on saving. Arguments in the environment: DFC_BINARY, DFC_SETUP (the set-up), DFC_FILE (a file to be made).

local function fail(what)
  io.stderr:write(what .. "\n")
  vim.cmd("cquit 1")
end

local function wait(what, condition)
  if not vim.wait(60000, condition, 20) then
    fail("waited in vain for " .. what)
  end
end

local function errors()
  return vim.diagnostic.get(0, { severity = vim.diagnostic.severity.ERROR })
end

vim.g.dfc_path = vim.env.DFC_BINARY
dofile(vim.env.DFC_SETUP)

vim.fn.writefile({
  "job copy {}",
  "record Order { id: int64, price: decimal(15, 2)? }",
  'source orders = csv("orders.csv", schema: Order)',
  "stream paid = orders   |>   filter(pric > 0)",
  'sink paid |> csv("out.csv")',
}, vim.env.DFC_FILE)
vim.cmd.edit(vim.env.DFC_FILE)
if vim.bo.filetype ~= "df" then
  fail("the file's type is " .. vim.bo.filetype)
end

wait("the mistake", function() return #errors() == 1 end)
if errors()[1].code ~= "E0404" then
  fail("another mistake: " .. vim.inspect(errors()))
end

local line = vim.api.nvim_buf_get_lines(0, 3, 4, true)[1]
vim.api.nvim_buf_set_lines(0, 3, 4, true, { (line:gsub("pric", "price")) })
wait("the mistake to go", function() return #errors() == 0 end)

vim.cmd.write()
local saved = vim.fn.readfile(vim.env.DFC_FILE)
if saved[4] ~= "stream paid = orders |> filter(price > 0)" then
  fail("saved without formatting: " .. saved[4])
end
vim.cmd("qall!")
