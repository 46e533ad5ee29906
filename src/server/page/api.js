// The server's API as the page uses it: JSON, text and streams of events. The key stays in this tab.

const kKeyName = "ebb.key";

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const hasKey = () => sessionStorage.getItem(kKeyName) !== null;
export const setKey = (key) => sessionStorage.setItem(kKeyName, key);

async function messageOf(response) {
  try {
    return (await response.json()).error.message;
  } catch {
    return `the server answered ${response.status}`;
  }
}

async function request(path, { headers = {}, ...options } = {}) {
  const key = sessionStorage.getItem(kKeyName);
  const sent = key === null ? headers : { ...headers, Authorization: `Bearer ${key}` };
  const response = await fetch(path, { ...options, headers: sent, cache: "no-store" });
  if (!response.ok) throw new ApiError(response.status, await messageOf(response));
  return response;
}

export const getJson = async (path) => (await request(path)).json();
export const postJson = async (path, body) => (await request(path, { method: "POST", body: JSON.stringify(body) })).json();
export const getText = async (path) => (await request(path)).text();

// Each event of a stream, parsed; ends at [DONE]. A stream that breaks off throws.
export async function* streamChat(body, sessionId, signal) {
  const response = await request("v1/chat/completions", {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Session-Id": sessionId },
    body: JSON.stringify({ ...body, stream: true, stream_options: { include_usage: true } }),
    signal,
  });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new ApiError(0, "the stream broke off");
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      if (!event.startsWith("data: ")) continue;
      const data = event.slice(6);
      if (data === "[DONE]") return;
      const json = JSON.parse(data);
      if (json.error) throw new ApiError(json.error.code, json.error.message);
      yield json;
    }
  }
}

// The value of one metric without labels; 0 where it is not told.
export function metric(text, name) {
  const at = text.indexOf(`\n${name} `);
  return at < 0 ? 0 : Number(text.slice(at + name.length + 2).split("\n", 1)[0]);
}
