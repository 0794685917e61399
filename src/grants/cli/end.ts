// `portcullis access end`.

import { type ControlPlaneOptions, withControlPlane } from '../../cli/client/control-plane.ts'
import { ACCESS_GRANTS } from '../core/access-grant-kind.ts'

export interface EndOptions extends ControlPlaneOptions {
  readonly name: string
}

export function endAccess(options: EndOptions): Promise<number> {
  const { name, out } = options
  const needs = 'create of accessgrants/end'
  return withControlPlane({ ...options, needs, kind: ACCESS_GRANTS }, async (client) => {
    if (client.post === undefined) throw new Error('this client cannot end access')
    await client.post(ACCESS_GRANTS, { namespace: '', name }, 'end', {})
    out(`${name} has ended\n`)
    return 0
  })
}
