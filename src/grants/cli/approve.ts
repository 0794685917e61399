// `portcullis access approve`: shows what is asked for, asks, and approves this very object.

import { type ControlPlaneOptions, withControlPlane } from '../../cli/client/control-plane.ts'
import { type ConfirmOptions, confirmed } from '../../cli/command/confirm.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { ACCESS_GRANTS } from '../core/access-grant-kind.ts'
import { readGrant } from '../core/read-grant.ts'
import { grantText } from './grant-text.ts'

export interface ApproveOptions extends ControlPlaneOptions, ConfirmOptions {
  readonly name: string
}

export function approveAccess(options: ApproveOptions): Promise<number> {
  const { name, out } = options
  const needs = 'get of accessgrants and create of accessgrants/approval: --access-approver of the gateway'
  return withControlPlane({ ...options, needs, kind: ACCESS_GRANTS }, async (client) => {
    const at = { namespace: '', name }
    const read = await client.get(ACCESS_GRANTS, at)
    const { uid, phase } = readGrant(read)
    if (phase !== 'Pending') throw new UserError(`${name} is ${phase}`, 'portcullis access list shows what is pending')
    out(grantText(read))
    if (!(await confirmed(options, `approve ${name}?`))) return 1
    if (client.post === undefined) throw new Error('this client cannot approve')
    const { status } = readGrant(await client.post(ACCESS_GRANTS, at, 'approval', { uid }))
    out(`${name} is approved, from ${status.startsAt} until ${status.endsAt}\n`)
    return 0
  })
}
