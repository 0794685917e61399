// What a tap shows of a query: values only for parameters that kube-apiserver knows and that can't hold a secret. For its other parameters
// the name; all the rest is only counted, because a bare token would look like a name.

import { QueryReader } from '../../../gateway/core/request/query-reader.ts'

/** metav1.ListOptions, GetOptions, CreateOptions and so on, PodLogOptions, PodExecOptions without its command. */
const SHOWN: ReadonlySet<string> = new Set([
  'allowWatchBookmarks',
  'container',
  'dryRun',
  'exact',
  'export',
  'fieldManager',
  'fieldSelector',
  'fieldValidation',
  'follow',
  'force',
  'gracePeriodSeconds',
  'ignoreStoreReadErrorWithClusterBreakingPotential',
  'includeUninitialized',
  'insecureSkipTLSVerifyBackend',
  'labelSelector',
  'limit',
  'limitBytes',
  'orphanDependents',
  'ports',
  'pretty',
  'previous',
  'propagationPolicy',
  'resourceVersion',
  'resourceVersionMatch',
  'sendInitialEvents',
  'sinceSeconds',
  'sinceTime',
  'stderr',
  'stdin',
  'stdout',
  'stream',
  'tailLines',
  'timeout',
  'timeoutSeconds',
  'timestamps',
  'tty',
  'verbose',
  'watch',
])

/** Their values are secrets, hold parts of objects, or are free text. */
const REDACTED: ReadonlySet<string> = new Set([
  'access_token',
  'api_key',
  'apikey',
  'authorization',
  'client_secret',
  'code',
  'command',
  'continue',
  'id_token',
  'key',
  'password',
  'path',
  'refresh_token',
  'secret',
  'sig',
  'signature',
  'state',
  'token',
])

const MAX_VALUE = 64
const MAX_QUERY = 256
/** Longer queries are not read: the thread that serves the request writes the event. */
const MAX_READ = 4096

/**
 * Without the `?`; '' if there is none. Slightly more than 256 characters at most.
 * Without the `?`; '' when there is none. At most a little more than 256 characters.
 * @param target the request target as received
 */
export function shownQuery(target: string): string {
  const mark = target.indexOf('?')
  if (mark < 0 || mark === target.length - 1) return ''
  const query = target.slice(mark + 1)
  if (query.length > MAX_READ) return `[${query.length} characters]`
  const reader = new QueryReader(query)
  const parts: string[] = []
  let length = 0
  let others = query.split(/[&;]/).filter((part) => part !== '').length
  while (length < MAX_QUERY && reader.next()) {
    const part = shownParameter(reader)
    if (part === '') continue
    if (parts.at(-1) !== part) {
      parts.push(part)
      length += part.length
    }
    others--
  }
  if (others > 0) parts.push(`[${others} more]`)
  return parts.join('&')
}

/** '' = not shown. */
function shownParameter(reader: QueryReader): string {
  if (REDACTED.has(reader.key.toLowerCase())) return `${reader.key.toLowerCase()}=[redacted]`
  if (!SHOWN.has(reader.key)) return ''
  const value = reader.value() ?? ''
  return `${reader.key}=${value.length > MAX_VALUE ? `${value.slice(0, MAX_VALUE)}…` : value}`
}
