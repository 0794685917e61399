# Posts bodies as Python's clients do, each on a connection of its own, and prints a line for each: the status, or the error.
# urllib is of the standard library and speaks HTTP/1.1; httpx speaks both.

import ssl
import sys
import urllib.error
import urllib.request

client, port, host, path, cert, key, size, runs, timeout = sys.argv[1:]
body = bytes(int(size))


def tls():
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(cert, key)
    return context


def by_urllib():
    request = urllib.request.Request(f"https://127.0.0.1:{port}{path}", body, {"Host": host})
    handlers = urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls())
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=float(timeout)) as response:
            response.read()
            return response.status
    except urllib.error.HTTPError as answer:
        answer.read()
        return answer.code


def by_httpx(http2):
    import httpx

    with httpx.Client(http1=not http2, http2=http2, verify=tls(), timeout=float(timeout), trust_env=False) as session:
        url = f"https://127.0.0.1:{port}{path}"
        return session.post(url, content=body, headers={"Host": host}, extensions={"sni_hostname": host}).status_code


CLIENTS = {"urllib": by_urllib, "httpx": lambda: by_httpx(False), "httpx-h2": lambda: by_httpx(True)}

for _ in range(int(runs)):
    try:
        said = CLIENTS[client]()
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
    print(said, flush=True)
