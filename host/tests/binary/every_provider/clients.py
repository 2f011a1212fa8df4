"""Does one thing through a vendor's own client library: `clients.py WHAT WHICH BASE_URL`.

- `converse`: an image and a question, a tool that is called until the model says something, and a
  word of thanks, all streamed. History is kept as the library's documentation says. Prints what the
  model said, one line an answer.
- `ask`: one question whose answer comes at once; prints it.
- `list`: prints the names of the models, one a line.
"""

import base64
import json
import sys

SYSTEM = "You are brief."
QUESTION = "which system is this?"
THANKS = "thanks"
IMAGE = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0"
TOOL = "get_environment"
ABOUT = "Tells facts about this computer."
SCHEMA = {
    "type": "object",
    "properties": {"aspect": {"type": "string", "enum": ["os", "shell", "cwd", "moon"]}},
    "additionalProperties": False,
}


def run_tool(arguments):
    """Returns what the tool says, and whether it failed."""
    if arguments["aspect"] == "moon":
        return {"error": "unknown aspect"}, True
    return {"name": "Linux"}, False


def anthropic(base):
    from anthropic import Anthropic

    client = Anthropic(base_url=base, api_key="key")
    image = {
        "type": "base64",
        "media_type": "image/png",
        "data": base64.b64encode(IMAGE).decode(),
    }
    question = [{"type": "text", "text": QUESTION}, {"type": "image", "source": image}]
    messages = [{"role": "user", "content": question}]

    def ask():
        with client.messages.stream(
            model="claude-opus-5-5",
            max_tokens=4096,
            system=SYSTEM,
            thinking={"type": "adaptive", "display": "summarized"},
            tools=[{"name": TOOL, "description": ABOUT, "input_schema": SCHEMA}],
            messages=messages,
        ) as stream:
            return stream.get_final_message()

    def answer():
        while True:
            said = ask()
            messages.append({"role": "assistant", "content": said.content})
            calls = [block for block in said.content if block.type == "tool_use"]
            if not calls:
                return "".join(block.text for block in said.content if block.type == "text")
            results = []
            for call in calls:
                result, failed = run_tool(call.input)
                results.append(
                    {
                        "type": "tool_result",
                        "tool_use_id": call.id,
                        "content": json.dumps(result),
                        "is_error": failed,
                    }
                )
            messages.append({"role": "user", "content": results})

    yield answer()
    messages.append({"role": "user", "content": THANKS})
    yield answer()


def responses(base):
    from openai import OpenAI

    client = OpenAI(base_url=base + "/v1", api_key="key")
    url = "data:image/png;base64," + base64.b64encode(IMAGE).decode()
    question = [
        {"type": "input_text", "text": QUESTION},
        {"type": "input_image", "image_url": url, "detail": "auto"},
    ]
    items = [{"role": "user", "content": question}]

    def ask():
        with client.responses.stream(
            model="gpt-5.2",
            instructions=SYSTEM,
            input=items,
            tools=[
                {
                    "type": "function",
                    "name": TOOL,
                    "description": ABOUT,
                    "parameters": SCHEMA,
                    "strict": False,
                }
            ],
            reasoning={"summary": "auto"},
            store=False,
            include=["reasoning.encrypted_content"],
        ) as stream:
            return stream.get_final_response()

    def answer():
        while True:
            said = ask()
            for item in said.output:
                item = item.to_dict()
                # What the library adds for its caller, and ids: nothing is stored that has one.
                item.pop("parsed_arguments", None)
                item.pop("id", None)
                for piece in item.get("content") or []:
                    piece.pop("parsed", None)
                items.append(item)
            calls = [item for item in said.output if item.type == "function_call"]
            if not calls:
                return said.output_text
            for call in calls:
                result, _ = run_tool(json.loads(call.arguments))
                items.append(
                    {
                        "type": "function_call_output",
                        "call_id": call.call_id,
                        "output": json.dumps(result),
                    }
                )

    yield answer()
    items.append({"role": "user", "content": THANKS})
    yield answer()


def chat(base):
    from openai import OpenAI

    client = OpenAI(base_url=base + "/v1", api_key="key")
    url = "data:image/png;base64," + base64.b64encode(IMAGE).decode()
    question = [
        {"type": "text", "text": QUESTION},
        {"type": "image_url", "image_url": {"url": url}},
    ]
    messages = [
        {"role": "developer", "content": SYSTEM},
        {"role": "user", "content": question},
    ]
    tool = {"name": TOOL, "description": ABOUT, "parameters": SCHEMA}

    def ask():
        with client.chat.completions.stream(
            model="gpt-5.2",
            messages=messages,
            tools=[{"type": "function", "function": tool}],
            stream_options={"include_usage": True},
        ) as stream:
            return stream.get_final_completion().choices[0].message

    def answer():
        while True:
            said = ask()
            message = said.to_dict(exclude_none=True)
            # What the library adds for its caller.
            message.pop("parsed", None)
            for call in message.get("tool_calls") or []:
                call.pop("index", None)
                call["function"].pop("parsed_arguments", None)
            messages.append(message)
            if not said.tool_calls:
                return said.content
            for call in said.tool_calls:
                result, _ = run_tool(json.loads(call.function.arguments))
                messages.append(
                    {"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)}
                )

    yield answer()
    messages.append({"role": "user", "content": THANKS})
    yield answer()


def google(base):
    from google import genai
    from google.genai import types

    client = genai.Client(api_key="key", http_options=types.HttpOptions(base_url=base))
    function = types.FunctionDeclaration(
        name=TOOL, description=ABOUT, parameters_json_schema=SCHEMA
    )
    config = types.GenerateContentConfig(
        system_instruction=SYSTEM,
        tools=[types.Tool(function_declarations=[function])],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        thinking_config=types.ThinkingConfig(include_thoughts=True),
    )
    talk = client.chats.create(model="gemini-4-argon", config=config)

    def answer(said):
        while True:
            text, calls = "", []
            for chunk in talk.send_message_stream(said):
                for part in (chunk.candidates[0].content and chunk.candidates[0].content.parts) or []:
                    if part.function_call:
                        calls.append(part.function_call)
                    elif part.text and not part.thought:
                        text += part.text
            if not calls:
                return text
            said = []
            for call in calls:
                result, failed = run_tool(call.args)
                response = result if failed else {"output": result}
                said.append(
                    types.Part(
                        function_response=types.FunctionResponse(
                            id=call.id, name=call.name, response=response
                        )
                    )
                )

    image = types.Part.from_bytes(data=IMAGE, mime_type="image/png")
    yield answer([types.Part(text=QUESTION), image])
    yield answer(THANKS)


def ollama(base):
    from ollama import Client

    client = Client(host=base)
    messages = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": QUESTION, "images": [IMAGE]},
    ]
    tool = {"name": TOOL, "description": ABOUT, "parameters": SCHEMA}

    def ask():
        text, thinking, calls = "", "", []
        for chunk in client.chat(
            model="qwen3-vl:8b",
            messages=messages,
            tools=[{"type": "function", "function": tool}],
            think=True,
            stream=True,
        ):
            text += chunk.message.content or ""
            thinking += chunk.message.thinking or ""
            calls.extend(chunk.message.tool_calls or [])
        return text, thinking, calls

    def answer():
        while True:
            text, thinking, calls = ask()
            message = {"role": "assistant", "content": text, "thinking": thinking}
            messages.append({**message, "tool_calls": calls} if calls else message)
            if not calls:
                return text
            for call in calls:
                result, _ = run_tool(call.function.arguments)
                messages.append(
                    {
                        "role": "tool",
                        "tool_name": call.function.name,
                        "content": json.dumps(result),
                    }
                )

    yield answer()
    messages.append({"role": "user", "content": THANKS})
    yield answer()


def ask(which, base):
    if which == "anthropic":
        from anthropic import Anthropic

        said = Anthropic(base_url=base, api_key="key").messages.create(
            model="claude-opus-5-5",
            max_tokens=4096,
            messages=[{"role": "user", "content": QUESTION}],
        )
        yield said.content[0].text
    elif which == "openai":
        from openai import OpenAI

        client = OpenAI(base_url=base + "/v1", api_key="key")
        yield client.responses.create(model="gpt-5.2", input=QUESTION, store=False).output_text
    elif which == "openai-chat":
        from openai import OpenAI

        said = OpenAI(base_url=base + "/v1", api_key="key").chat.completions.create(
            model="gpt-5.2", messages=[{"role": "user", "content": QUESTION}]
        )
        yield said.choices[0].message.content
    elif which == "google":
        from google import genai

        client = genai.Client(api_key="key", http_options={"base_url": base})
        yield client.models.generate_content(model="gemini-4-argon", contents=QUESTION).text
    else:
        from ollama import Client

        messages = [{"role": "user", "content": QUESTION}]
        yield Client(host=base).chat(model="qwen3-vl:8b", messages=messages).message.content


def models(which, base):
    if which == "anthropic":
        from anthropic import Anthropic

        return [model.id for model in Anthropic(base_url=base, api_key="key").models.list()]
    if which in ("openai", "openai-chat"):
        from openai import OpenAI

        return [model.id for model in OpenAI(base_url=base + "/v1", api_key="key").models.list()]
    if which == "google":
        from google import genai

        client = genai.Client(api_key="key", http_options={"base_url": base})
        return [model.name.removeprefix("models/") for model in client.models.list()]
    from ollama import Client

    return [model.model for model in Client(host=base).list().models]


CLIENTS = {
    "anthropic": anthropic,
    "openai": responses,
    "openai-chat": chat,
    "google": google,
    "ollama": ollama,
}

if __name__ == "__main__":
    _, what, which, base_url = sys.argv
    if what == "converse":
        lines = CLIENTS[which](base_url)
    else:
        lines = {"ask": ask, "list": models}[what](which, base_url)
    for line in lines:
        print(line, flush=True)
