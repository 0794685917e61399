// Events that are too large lose their bodies, as in kube-apiserver (apiserver/plugin/pkg/audit/truncate).

import { recordOf } from '../../../kit/api/json/object-shape.ts'

/** A batch for the webhook is split above it; kube-apiserver's default of --audit-webhook-truncate-max-batch-size. */
export const MAX_BATCH_BYTES: number = 10 * 1024 * 1024

const ANNOTATION = 'audit.k8s.io/truncated'

/** Of an event as a line, in bytes. @returns the line, or one without the bodies; undefined = too large even so */
export function truncateEvent(line: string, maxBytes: number): string | undefined {
  // A character of UTF-16 has three bytes of UTF-8 at most.
  if (line.length * 3 <= maxBytes || Buffer.byteLength(line) <= maxBytes) return line
  const { requestObject, responseObject, annotations, ...event } = recordOf(JSON.parse(line))
  const level = event['level']
  if (level !== 'Request' && level !== 'RequestResponse') return undefined
  const short = JSON.stringify({ ...event, annotations: { ...recordOf(annotations), [ANNOTATION]: 'true' } })
  return Buffer.byteLength(short) <= maxBytes ? short : undefined
}
