// The package brings no types: what server.ts uses of it (version 5).

declare module 'http2-proxy' {
  import type { ClientRequest, OutgoingHttpHeaders, RequestOptions } from 'node:http'
  import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'

  interface WebOptions {
    /** Sends the request upstream; `options.headers` are those that may be passed on. */
    readonly onReq: (
      request: Http2ServerRequest,
      options: RequestOptions & { headers: OutgoingHttpHeaders },
    ) => ClientRequest | undefined | Promise<ClientRequest | undefined>
  }

  interface Proxy {
    /** Resolves when the answer has been passed on. */
    web(request: Http2ServerRequest, response: Http2ServerResponse, options: WebOptions): Promise<void>
  }

  const proxy: Proxy
  export = proxy
}
