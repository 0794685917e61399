// exec, attach and port-forward as their query says it (KK pkg/apis/core/v1/conversion.go; corev1.PodExecOptions): which container, which command.

import type { HeaderList } from '../../../kit/api/stream.ts'
import { headerValue } from './hop-headers.ts'
import { isTrue } from './list-options.ts'
import { QueryReader } from './query-reader.ts'

/** The subresources of a pod whose answer is a session. */
export type SessionKind = 'exec' | 'attach' | 'portforward'

export interface SessionRequest {
  readonly kind: SessionKind
  /** '' = the pod's default container. */
  readonly container: string
  /** For exec: one element for each argument, in order. */
  readonly command: readonly string[]
  /** Characters of arguments that did not fit. */
  readonly omitted: number
  /** For a port-forward, if its query names them: kubectl names them later, inside the session. */
  readonly ports: readonly string[]
  /** The requested ones of stdin, stdout, stderr and tty. */
  readonly streams: readonly string[]
}

interface PodRequest {
  readonly isResourceRequest: boolean
  readonly resource: string
  readonly subresource: string
}

/** Characters of a command that are kept. */
export const MAX_SESSION_COMMAND = 4096
/** Characters of the name of a protocol that are kept. */
const MAX_PROTOCOL = 100
/** Ports that are kept, and characters of each. */
export const MAX_SESSION_PORTS = 64
const STREAMS: ReadonlySet<string> = new Set(['stdin', 'stdout', 'stderr', 'tty'])

/** undefined = not a session of a pod. */
export function sessionKind({ isResourceRequest, resource, subresource }: PodRequest): SessionKind | undefined {
  if (!isResourceRequest || resource !== 'pods') return undefined
  switch (subresource) {
    case 'exec':
    case 'attach':
    case 'portforward':
      return subresource
    default:
      return undefined
  }
}

/** @param target as received */
export function readSessionRequest(kind: SessionKind, target: string): SessionRequest {
  const mark = target.indexOf('?')
  const query = new QueryReader(mark < 0 ? '' : target.slice(mark + 1))
  let container: string | undefined
  let room = MAX_SESSION_COMMAND
  let omitted = 0
  const command: string[] = []
  const ports: string[] = []
  const streams = new Map<string, boolean>()
  while (query.next()) {
    const { key } = query
    const value = query.value()
    if (value === undefined) continue
    if (key === 'container') container ??= value
    else if (key === 'command' && kind === 'exec') {
      if (room > 0) command.push(value.slice(0, room))
      omitted += Math.max(0, value.length - room)
      // An empty argument takes room, too.
      room = Math.max(0, room - value.length - 1)
    } else if (key === 'ports' && kind === 'portforward') {
      if (ports.length < MAX_SESSION_PORTS) ports.push(value.slice(0, MAX_SESSION_PORTS))
    } else if (STREAMS.has(key) && !streams.has(key)) streams.set(key, isTrue(value))
  }
  return {
    kind,
    container: container ?? '',
    command,
    omitted,
    ports,
    streams: [...streams].filter(([, wanted]) => wanted).map(([name]) => name),
  }
}

/** What upstream has switched to, and the version of the channels inside. @param head of its 101, names in lower case */
export function sessionProtocol(head: HeaderList): string {
  const version = headerValue(head, 'sec-websocket-protocol') ?? headerValue(head, 'x-stream-protocol-version') ?? ''
  return `${headerValue(head, 'upgrade') ?? ''} ${version}`.trim().slice(0, MAX_PROTOCOL)
}
