// Who may ask for access, and who may approve it, in the embedded API server.

import type { KindRole } from '../../kube/api/kind-role.ts'

const GROUP = 'portcullis.io'
const READS: readonly string[] = ['get', 'list', 'watch']

/** A requester ends its own grants alone, which the subresource sees to; it cannot delete any, so that a name is not used again. */
export const ACCESS_REQUESTER: KindRole = {
  name: 'access-requester',
  group: 'portcullis:access-requesters',
  rules: [
    { verbs: ['create', ...READS], group: GROUP, resources: ['accessgrants'] },
    { verbs: READS, group: GROUP, resources: ['accessgrants/status'] },
    { verbs: ['create'], group: GROUP, resources: ['accessgrants/end'] },
  ],
}

export const ACCESS_APPROVER: KindRole = {
  name: 'access-approver',
  group: 'portcullis:access-approvers',
  rules: [
    { verbs: READS, group: GROUP, resources: ['accessgrants', 'accessgrants/status'] },
    { verbs: ['create'], group: GROUP, resources: ['accessgrants/approval', 'accessgrants/end'] },
  ],
}
