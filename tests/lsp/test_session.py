"""An editing session with a client that is not ours (pytest-lsp, on pygls): open, a mistake, its quick fix, a field renamed
through three streams, formatting, completion. The server's binary is given by DFC."""

import os
import pathlib

import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

TEXT = """\
job nightly {}

record Order { id: int64, status: string, price: decimal(9, 2) }

source orders = csv("orders.csv", schema: Order)

stream paid = orders |> filter(status == "paid")

stream net = paid |> derive(net: price * 2)

stream by_status = net |> aggregate(by: [status], total: sum(net))

sink by_status |> csv("out.csv")
"""


@pytest_lsp.fixture(
    params=["neovim", "visual-studio-code", "emacs"],
    config=ClientServerConfig(server_command=[os.environ["DFC"], "lsp"]),
)
async def client(lsp_client: LanguageClient, request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    (folder / "main.df").write_text(TEXT)
    capabilities = client_capabilities(request.param)
    # pytest-lsp's client is pushed to; it does not ask by itself.
    if capabilities.text_document is not None:
        capabilities.text_document.diagnostic = None
    # Nor does it watch files, whatever the capabilities it borrows say.
    lsp_client.feature(types.CLIENT_REGISTER_CAPABILITY)(lambda params: None)
    await lsp_client.initialize_session(
        types.InitializeParams(
            capabilities=capabilities,
            workspace_folders=[types.WorkspaceFolder(uri=folder.as_uri(), name="project")],
        )
    )
    lsp_client.folder = folder
    yield
    await lsp_client.shutdown_session()


def place(text: str, part: str) -> types.Position:
    """The place of the `$` in a part of a text without wide characters."""
    at = text.index(part.replace("$", "")) + part.index("$")
    before = text[:at]
    return types.Position(line=before.count("\n"), character=at - (before.rfind("\n") + 1))


def edited(text: str, edits) -> str:
    lines = text.splitlines(keepends=True)

    def offset(position):
        return sum(map(len, lines[: position.line])) + position.character

    for edit in sorted(edits, key=lambda edit: offset(edit.range.start), reverse=True):
        text = text[: offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end) :]
    return text


def edits_of(edit: types.WorkspaceEdit, uri: str):
    if edit.changes:
        return edit.changes[uri]
    return [one for change in edit.document_changes if change.text_document.uri == uri for one in change.edits]


async def findings(client: LanguageClient, uri: str, version: int):
    """Waits for the findings on this version: call it right after what they come from."""
    while True:
        params = await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        if params.uri == uri and params.version == version:
            return list(params.diagnostics)


def open_document(client: LanguageClient, text: str) -> str:
    uri = (pathlib.Path(client.folder) / "main.df").as_uri()
    item = types.TextDocumentItem(uri=uri, language_id="df", version=1, text=text)
    client.text_document_did_open(types.DidOpenTextDocumentParams(text_document=item))
    return uri


def change(client: LanguageClient, uri: str, version: int, range_, text: str):
    client.text_document_did_change(
        types.DidChangeTextDocumentParams(
            text_document=types.VersionedTextDocumentIdentifier(uri=uri, version=version),
            content_changes=[types.TextDocumentContentChangePartial(range=range_, text=text)],
        )
    )


async def test_a_mistake_is_seen_and_mended(client: LanguageClient):
    uri = open_document(client, TEXT)
    assert await findings(client, uri, 1) == []
    # `status` becomes `statos`.
    start = place(TEXT, "filter(stat$us")
    end = types.Position(line=start.line, character=start.character + 1)
    broken = TEXT.replace("filter(status", "filter(statos")
    change(client, uri, 2, types.Range(start=start, end=end), "o")
    (found,) = await findings(client, uri, 2)
    assert found.source == "dfc" and found.severity == types.DiagnosticSeverity.Error
    assert "statos" in found.message
    actions = await client.text_document_code_action_async(
        types.CodeActionParams(
            text_document=types.TextDocumentIdentifier(uri=uri),
            range=found.range,
            context=types.CodeActionContext(diagnostics=[found], only=[types.CodeActionKind.QuickFix]),
        )
    )
    mended = edited(broken, edits_of(actions[0].edit, uri))
    assert mended == TEXT
    change(client, uri, 3, types.Range(start=start, end=end), "u")
    assert await findings(client, uri, 3) == []


async def test_a_field_is_renamed_through_three_streams(client: LanguageClient):
    uri = open_document(client, TEXT)
    document = types.TextDocumentIdentifier(uri=uri)
    at = place(TEXT, "by: [sta$tus]")
    prepared = await client.text_document_prepare_rename_async(
        types.PrepareRenameParams(text_document=document, position=at)
    )
    assert prepared.placeholder == "status"
    edit = await client.text_document_rename_async(
        types.RenameParams(text_document=document, position=at, new_name="state")
    )
    renamed = edited(TEXT, edits_of(edit, uri))
    assert renamed == (
        TEXT.replace("status: string", 'state: string = "status"')
        .replace("filter(status", "filter(state")
        .replace("[status]", "[state]")
    )


async def test_a_text_is_formatted(client: LanguageClient):
    text = TEXT.replace("record Order {", "record   Order{").replace("int64, ", "int64,")
    uri = open_document(client, text)
    edits = await client.text_document_formatting_async(
        types.DocumentFormattingParams(
            text_document=types.TextDocumentIdentifier(uri=uri),
            options=types.FormattingOptions(tab_size=4, insert_spaces=True),
        )
    )
    assert edited(text, edits) == TEXT


async def test_fields_are_offered(client: LanguageClient):
    uri = open_document(client, TEXT)
    items = await client.text_document_completion_async(
        types.CompletionParams(
            text_document=types.TextDocumentIdentifier(uri=uri), position=place(TEXT, "sum($net)")
        )
    )
    items = items.items if isinstance(items, types.CompletionList) else items
    assert {"net", "status", "price", "id"} <= {item.label for item in items}
