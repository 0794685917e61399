// The schema of spec.audit.

import { defaultsTo, object, oneOf } from '../../../kit/api/json/json-schema.ts'

export const AUDIT_SCHEMA = object('What is kept of what users do, beside the audit log.', {
  sessions: object(
    'Records exec and attach, in the directory of --session-recording-dir. If present, even empty, it is on. Port-forwards are not recorded. Default: off.',
    {
      record: defaultsTo(
        'Output',
        oneOf(
          'Output: what terminals and commands print, which has what is typed at a prompt, but no password. InputAndOutput: also what is typed and piped in, passwords too.',
          ['Output', 'InputAndOutput'],
        ),
      ),
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
