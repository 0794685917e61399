// Who asks most: the users and programs of `portcullis top`. Missing where the gateway does not count them.

import type { VNode } from 'preact'

export function TopClients(_: { readonly cluster: string }): VNode | null {
  return null
}
