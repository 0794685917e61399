// The schema of spec.audit.

import { defaultsTo, object, oneOf } from '../../../kit/api/json/json-schema.ts'

const PORT_FORWARD_RECORDINGS = ['None', 'Output', 'InputAndOutput'] as const

/** What is recorded of port-forwards. */
export type PortForwardRecording = (typeof PORT_FORWARD_RECORDINGS)[number]

const PORT_FORWARDS_TEXT =
  'What is recorded of port-forwards. None: nothing; they are only in the audit log. Output: what pods send. InputAndOutput: also what clients send. Both contain the secrets of the forwarded protocols: passwords, tokens, database rows.'

export const AUDIT_SCHEMA = object('What is recorded of user activity, in addition to the audit log.', {
  sessions: object(
    'If present, even if empty, exec, attach and, if portForwards asks for it, port-forwards are recorded, in --session-recording-dir. Default: nothing is recorded.',
    {
      record: defaultsTo(
        'Output',
        oneOf(
          'What is recorded of exec and attach. Output: what terminals and commands print, which includes what is typed at a prompt, but no passwords. InputAndOutput: also what is typed and piped in, including passwords.',
          ['Output', 'InputAndOutput'],
        ),
      ),
      portForwards: defaultsTo('None', oneOf(PORT_FORWARDS_TEXT, PORT_FORWARD_RECORDINGS)),
      whenFull: defaultsTo(
        'Drop',
        oneOf(
          'What happens when a session cannot be recorded, or can no longer be: it is too large, the directory is full, the disk is slow or broken, or the protocol is unknown. Drop: it continues, and the audit log says so. Block: it waits for the disk, is refused with 403, or ends.',
          ['Drop', 'Block'],
        ),
      ),
    },
  ),
})
