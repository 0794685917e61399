// Which requests may run for hours (apiserver/pkg/server/filters/longrunning.go; KK pkg/controlplane/apiserver/config.go). They are exempt
// from timeouts, hold an in-flight slot only until their response head, and are ended by a drain.

import type { RequestInfo } from './request-info.ts'

/** Watches, exec, attach, port-forward, proxy, every log (even without follow), and profiles. */
export function isLongRunning(info: RequestInfo): boolean {
  if (!info.isResourceRequest) return info.path.startsWith('/debug/pprof/')
  if (info.verb === 'watch' || info.verb === 'proxy') return true
  switch (info.subresource) {
    case 'attach':
    case 'exec':
    case 'proxy':
    case 'log':
    case 'portforward':
      return true
    default:
      return false
  }
}

/** Whether the response is a stream of watch events. */
export function isWatch(info: RequestInfo): boolean {
  return info.isResourceRequest && info.verb === 'watch'
}
