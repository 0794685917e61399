// The schemas of rules: which requests a policy or an exemption is for, and which clients an access list.

import { list, object, type Schema, text } from '../kube/json-schema.ts'

const serviceAccount = object('A ServiceAccount; both are needed.', {
  namespace: text('Its namespace.'),
  name: text('Its name.'),
})

/** An entry of a list in a rule. */
export const ENTRY_SCHEMA: Schema<string> = text('`x`, `-x` (not x) or `*` (all).')

export const RULE_SCHEMA = object(
  'Matches a request when all fields do. `-x` inverts an entry; a list of inverted entries means none of these; in a ' +
    'list that has positive entries too, the inverted ones are ignored.',
  {
    verbs: list(
      'get, list, watch, create, update, patch, delete, deletecollection ... Empty matches nothing.',
      ENTRY_SCHEMA,
    ),
    apiGroups: list('API groups, the core group is the empty string. Empty matches nothing.', ENTRY_SCHEMA),
    resources: list('`pods`, `pods/exec`, `*/scale`. Empty matches nothing.', ENTRY_SCHEMA),
    resourceNames: list('Names of objects. Empty matches all.', ENTRY_SCHEMA),
    users: list(
      'User names; a trailing * is a prefix glob. Empty matches all, unless serviceAccounts are given.',
      ENTRY_SCHEMA,
    ),
    serviceAccounts: list('ServiceAccounts, in addition to users.', serviceAccount),
    userGroups: list('Groups, of which the user needs to have one. Empty matches all.', ENTRY_SCHEMA),
    nonResourceURLs: list(
      'Paths of non-resource requests; a trailing * is a prefix glob. Empty matches none.',
      ENTRY_SCHEMA,
    ),
    namespaces: list(
      'Namespaces, the empty string for cluster-scoped requests; trailing * globs. Empty: all.',
      ENTRY_SCHEMA,
    ),
    userAgents: list('User-Agent headers; a trailing * is a prefix glob. Empty matches all.', ENTRY_SCHEMA),
  },
)

export const ACCESS_RULE_SCHEMA = object('Matches a client when all fields given do.', {
  name: text('Shown in the refusal.'),
  users: list('User names; a trailing * is a prefix glob.', ENTRY_SCHEMA),
  userGroups: list('Groups, of which the user needs to have one.', ENTRY_SCHEMA),
  userAgents: list('User-Agent headers; a trailing * is a prefix glob.', ENTRY_SCHEMA),
  sourceIPs: list('Addresses of the client.', text('An address, or a block such as 10.0.0.0/8.')),
})
