"""A proxy before a server that makes a client's model call one tool, with arguments of ours.

The bundled model does not know what an agent's prompt asks of it. What it writes is forced by the request instead, as any client may do: of a request that
has the tool, and no result of it yet, the tool alone is left, with schemas that allow nothing but these arguments, and `tool_choice` names it. All else
goes through as it came, so that what reads the result is the client, its next request, and the model. For OpenAI's chat and Responses and for Anthropic's
Messages; one thread a request.
"""
import http.client
import http.server
import json
import threading
import urllib.parse

PIECE = 65536


def constant(arguments):
    """A JSON Schema of nothing but these arguments."""
    return {
        "type": "object",
        "properties": {name: {"const": value} for name, value in arguments.items()},
        "required": list(arguments),
        "additionalProperties": False,
    }


class ForcingProxy:
    """Runs from construction to the end of the `with`. `results`: texts of tools' results that came by, as JSON."""

    def __init__(self, server_url, tool, arguments):
        self.server = urllib.parse.urlsplit(server_url)
        self.tool, self.arguments = tool, arguments
        self.results, self.forced, self.statuses = [], 0, []
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                proxy.pass_on(self, None)

            def do_POST(self):
                proxy.pass_on(self, self.rfile.read(int(self.headers.get("content-length", 0))))

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.http.shutdown()

    def pass_on(self, client, body):
        if body is not None and client.path.partition("?")[0].endswith(("/chat/completions", "/responses", "/messages")):
            body = json.dumps(self.force(json.loads(body))).encode()
        server = http.client.HTTPConnection(self.server.hostname, self.server.port)
        headers = {name: value for name, value in client.headers.items() if name.lower() not in ("host", "content-length", "accept-encoding")}
        server.request(client.command, client.path, body, headers)
        answer = server.getresponse()
        self.statuses.append(answer.status)
        client.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                client.send_header(name, value)
        client.send_header("transfer-encoding", "chunked")
        client.end_headers()
        try:
            while piece := answer.read1(PIECE):
                client.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            client.wfile.write(b"0\r\n\r\n")
        except ConnectionError:
            client.close_connection = True
        server.close()

    def force(self, request):
        results = [text for entry in request.get("messages") or request.get("input") or [] for text in results_of(entry)]
        self.results += results
        tools = [tool for tool in request.get("tools") or [] if self.tool == tool.get("function", tool).get("name")]
        if results or not tools:
            return request
        self.forced += 1
        tool = tools[0]
        function = tool.get("function", tool)
        function["input_schema" if "input_schema" in tool else "parameters"] = constant(self.arguments)
        function.pop("strict", None)
        if "input_schema" in tool:
            choice = {"type": "tool", "name": self.tool}
        elif "function" in tool:
            choice = {"type": "function", "function": {"name": self.tool}}
        else:
            choice = {"type": "function", "name": self.tool}
        request.pop("thinking", None)
        return {**request, "tools": [tool], "tool_choice": choice}


def results_of(entry):
    """The texts of tools' results in a message, or an item of Responses."""
    if not isinstance(entry, dict):
        return
    if entry.get("role") == "tool":
        yield json.dumps(entry.get("content"))
    if entry.get("type") == "function_call_output":
        yield json.dumps(entry.get("output"))
    if isinstance(entry.get("content"), list):
        for part in entry["content"]:
            if isinstance(part, dict) and part.get("type") == "tool_result":
                yield json.dumps(part.get("content"))
