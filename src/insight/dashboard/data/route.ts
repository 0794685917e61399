// The current view: encoded in the fragment of the address, so that it can be linked and the server only knows one page.

import { useEffect, useState } from 'preact/hooks'

export type Route =
  | { readonly view: 'overview' }
  | { readonly view: 'cluster'; readonly name: string }
  | { readonly view: 'explain' }
  | { readonly view: 'tap' }

const CLUSTER = '#/clusters/'

function routeOf(hash: string): Route {
  if (hash.startsWith(CLUSTER)) {
    try {
      const name = decodeURIComponent(hash.slice(CLUSTER.length))
      if (name !== '') return { view: 'cluster', name }
    } catch {
      // Not an address written by this page.
    }
  }
  if (hash === '#/explain') return { view: 'explain' }
  if (hash === '#/tap') return { view: 'tap' }
  return { view: 'overview' }
}

export function clusterLink(name: string): string {
  return CLUSTER + encodeURIComponent(name)
}

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash)
  useEffect(() => {
    const onChange = (): void => {
      // Other fragments are anchors on the page.
      if (location.hash === '' || location.hash.startsWith('#/')) setHash(location.hash)
    }
    addEventListener('hashchange', onChange)
    return () => removeEventListener('hashchange', onChange)
  }, [])
  return routeOf(hash)
}
