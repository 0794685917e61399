// Events that are too large lose their bodies, as in kube-apiserver (apiserver/plugin/pkg/audit/truncate).

import { recordOf } from '../../kit/api/json/object-shape.ts'

const ANNOTATION = 'audit.k8s.io/truncated'

/** @param maxBytes of the event as a line @returns the line, or one without the bodies; undefined = still too large */
export function truncateEvent(line: string, maxBytes: number): string | undefined {
  // A UTF-16 code unit takes at most three bytes of UTF-8.
  if (line.length * 3 <= maxBytes || Buffer.byteLength(line) <= maxBytes) return line
  const { requestObject, responseObject, annotations, ...event } = recordOf(JSON.parse(line))
  const level = event['level']
  if (level !== 'Request' && level !== 'RequestResponse') return undefined
  const short = JSON.stringify({ ...event, annotations: { ...recordOf(annotations), [ANNOTATION]: 'true' } })
  return Buffer.byteLength(short) <= maxBytes ? short : undefined
}
