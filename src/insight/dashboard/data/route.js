// Which view is shown: it stands behind the # of the address, so that a link leads there and the server knows one page only.
import { useEffect, useState } from 'preact/hooks'

const CLUSTER = '#/clusters/'
export function routeOf(hash) {
  if (hash.startsWith(CLUSTER)) {
    try {
      const name = decodeURIComponent(hash.slice(CLUSTER.length))
      if (name !== '') return { view: 'cluster', name }
    } catch {
      // Not an address that this page has written.
    }
  }
  if (hash === '#/explain') return { view: 'explain' }
  if (hash === '#/tap') return { view: 'tap' }
  return { view: 'overview' }
}
export function clusterLink(name) {
  return CLUSTER + encodeURIComponent(name)
}
export function useRoute() {
  const [hash, setHash] = useState(location.hash)
  useEffect(() => {
    const onChange = () => {
      // Other fragments are places on the page.
      if (location.hash === '' || location.hash.startsWith('#/')) setHash(location.hash)
    }
    addEventListener('hashchange', onChange)
    return () => removeEventListener('hashchange', onChange)
  }, [])
  return routeOf(hash)
}
