// The schema of spec.audit.

import { defaultsTo, object, oneOf } from '../../../kit/api/json/json-schema.ts'

const PORT_FORWARD_RECORDINGS = ['None', 'Output', 'InputAndOutput'] as const

/** What is recorded of port-forwards. */
export type PortForwardRecording = (typeof PORT_FORWARD_RECORDINGS)[number]

const PORT_FORWARDS_TEXT =
  'None: port-forwards are in the audit log alone. Output: what pods send is recorded. InputAndOutput: also what clients send. Either has the secrets of the protocols inside: passwords, tokens, the rows of databases.'

export const AUDIT_SCHEMA = object('What is kept of what users do, beside the audit log.', {
  sessions: object(
    'Records exec, attach and, if asked for, port-forwards, in the directory of --session-recording-dir. If present, even empty, it is on. Default: off.',
    {
      record: defaultsTo(
        'Output',
        oneOf(
          'Of exec and attach. Output: what terminals and commands print, which has what is typed at a prompt, but no password. InputAndOutput: also what is typed and piped in, passwords too.',
          ['Output', 'InputAndOutput'],
        ),
      ),
      portForwards: defaultsTo('None', oneOf(PORT_FORWARDS_TEXT, PORT_FORWARD_RECORDINGS)),
      whenFull: defaultsTo(
        'Drop',
        oneOf(
          'When a session cannot be recorded, or no longer: too large, the directory full, the disk slow or broken, a protocol that is not known. Drop: it goes on, and the audit log says so. Block: it waits for the disk, is refused with 403, or ends.',
          ['Drop', 'Block'],
        ),
      ),
    },
  ),
})
