// Roles with rights on some kinds alone, for API servers without RBAC objects.

export interface KindRole {
  /** For messages. */
  readonly name: string
  /** The group that has it whatever the settings say. */
  readonly group: string
  readonly rules: readonly KindRule[]
}

/** As a rule of RBAC; `*` has no meaning. */
interface KindRule {
  readonly verbs: readonly string[]
  /** API group. */
  readonly group: string
  /** Each `PLURAL` or `PLURAL/SUBRESOURCE`. */
  readonly resources: readonly string[]
}
