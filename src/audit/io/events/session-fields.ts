// What an audit event says of a session (exec, attach, port-forward): which container and command, over which protocol, and once it has
// ended, how much went each way and who ended it.

import type { RequestRecord } from '../../../gateway/api/request-record.ts'
import { readSessionRequest, sessionKind } from '../../../gateway/core/request/session-request.ts'
import { safeJson } from '../../../kit/core/text/printable.ts'

/** JSON of annotations, each preceded by a comma; '' = not a session. A refused one has those of its request. */
export function sessionFields(record: RequestRecord): string {
  const kind = sessionKind(record)
  return (kind === undefined ? '' : requestFields(record, kind)) + recordedFields(record)
}

function requestFields({ target }: RequestRecord, kind: NonNullable<ReturnType<typeof sessionKind>>): string {
  const { container, command, omitted, ports, streams } = readSessionRequest(kind, target)
  let fields = ''
  if (container !== '') fields += annotation('container', container)
  // A list in JSON: an argument may contain blanks.
  if (command.length > 0) fields += annotation('command', safeJson(command))
  if (omitted > 0) fields += annotation('command-omitted', String(omitted))
  if (ports.length > 0) fields += annotation('ports', ports.join(','))
  if (streams.length > 0) fields += annotation('streams', streams.join(','))
  return fields
}

/** For any upgraded connection. */
function recordedFields({ session, requestBytes, responseBytes }: RequestRecord): string {
  if (session === undefined) return ''
  const fields = annotation('protocol', session.protocol)
  const { endedBy, report } = session
  if (endedBy === '') return fields
  const ended =
    fields +
    annotation('bytes-from-client', String(requestBytes)) +
    annotation('bytes-to-client', String(responseBytes)) +
    annotation('ended-by', endedBy)
  if (report === undefined) return ended
  const { recording, incomplete, outcome } = report
  return (
    ended +
    (recording === '' ? '' : annotation('recording', recording)) +
    (incomplete === '' ? '' : annotation('recording-incomplete', incomplete)) +
    (outcome === '' ? '' : annotation('outcome', outcome))
  )
}

/** Safe to print on a terminal: the values are the client's and upstream's. */
function annotation(name: string, value: string): string {
  return `,"portcullis.io/session-${name}":${safeJson(value)}`
}
