-- An editing session in Neovim with the set-up of editors/neovim: open, a mistake, its quick fix, a field renamed through
-- three streams, formatting. DFC is the binary, PROJECT the folder with main.df, SETUP the set-up.
-- Ends with exit code 0 and "session: ok", or with 1 and what went wrong.

local function run()
  vim.g.dfc_path = assert(os.getenv("DFC"), "DFC is not set")
  dofile(assert(os.getenv("SETUP"), "SETUP is not set"))
  vim.cmd("edit " .. vim.fn.fnameescape(assert(os.getenv("PROJECT"), "PROJECT is not set") .. "/main.df"))
  local buffer = vim.api.nvim_get_current_buf()

  local function wait(what, holds)
    assert(vim.wait(20000, holds, 20), "not in time: " .. what)
  end

  local function text()
    return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\n")
  end

  local function line_of(part)
    for number, line in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) do
      local column = line:find(part, 1, true)
      if column then
        return number, column - 1
      end
    end
    error("there is no " .. part)
  end

  wait("the server", function()
    local clients = vim.lsp.get_clients({ bufnr = buffer, name = "dfc" })
    return #clients == 1 and clients[1].initialized
  end)

  -- A mistake, and its message.
  local number, column = line_of("status ==")
  vim.api.nvim_buf_set_text(buffer, number - 1, column, number - 1, column + 6, { "statos" })
  wait("the finding", function()
    return #vim.diagnostic.get(buffer) == 1
  end)
  local found = vim.diagnostic.get(buffer)[1]
  assert(found.message:find("statos", 1, true), found.message)
  assert(found.lnum == number - 1 and found.col == column, "the finding is in line " .. found.lnum)

  -- Its quick fix.
  vim.ui.select = function(items, _, choose)
    choose(items[1], 1)
  end
  vim.api.nvim_win_set_cursor(0, { number, column })
  vim.lsp.buf.code_action({ apply = true, context = { only = { "quickfix" } } })
  wait("the fix", function()
    return #vim.diagnostic.get(buffer) == 0 and text():find("filter(status ==", 1, true) ~= nil
  end)

  -- A field renamed along the streams.
  number, column = line_of("by: [status]")
  vim.api.nvim_win_set_cursor(0, { number, column + 6 })
  vim.lsp.buf.rename("state")
  wait("the rename", function()
    return text():find("by: [state]", 1, true) ~= nil
  end)
  for _, part in ipairs({ 'state: string = "status"', "filter(state ==", "by: [state]" }) do
    assert(text():find(part, 1, true), "the rename has missed " .. part .. " in\n" .. text())
  end

  -- Formatting.
  number = line_of("record Order {")
  local record = vim.api.nvim_buf_get_lines(buffer, number - 1, number, false)[1]
  vim.api.nvim_buf_set_lines(buffer, number - 1, number, false, { (record:gsub("{ ", "{", 1):gsub("record ", "record   ")) })
  vim.lsp.buf.format({ timeout_ms = 20000 })
  assert(vim.api.nvim_buf_get_lines(buffer, number - 1, number, false)[1] == record, "not formatted:\n" .. text())
  wait("no finding at the end", function()
    return #vim.diagnostic.get(buffer) == 0
  end)
end

local good, message = xpcall(run, debug.traceback)
io.stdout:write(good and "session: ok\n" or ("session: " .. tostring(message) .. "\n"))
io.stdout:flush()
vim.cmd(good and "qall!" or "cquit!")
