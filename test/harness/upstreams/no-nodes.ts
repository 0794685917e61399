// A stub upstream as a cluster without nodes: lists have a resourceVersion, and watches stay open. A gateway's leader watches the nodes of every cluster
// that is switched.

import type { Http1Stub } from './stub-http1.ts'

/** It keeps no request that it has answered. */
export function answerWithoutNodes(stub: Http1Stub): void {
  const list = JSON.stringify({ kind: 'List', apiVersion: 'v1', metadata: { resourceVersion: '1' }, items: [] })
  stub.answer = ({ path, response }) => {
    stub.seen.length = 0
    response.setHeader('content-type', 'application/json')
    if (path.includes('watch=1')) response.flushHeaders()
    else response.end(list)
  }
}
