// A page of Headlamp without its looks: the lists of four kinds, by the hook that its tables call, with its own store, cache and watches. What they show is in
// `window.shown`.

// Its modules import each other in a circle, which has to be entered here.
import '@kinvolk/headlamp-plugin/lib/lib/k8s/index.js'
import Deployment from '@kinvolk/headlamp-plugin/lib/lib/k8s/deployment.js'
import Node from '@kinvolk/headlamp-plugin/lib/lib/k8s/node.js'
import Pod from '@kinvolk/headlamp-plugin/lib/lib/k8s/pod.js'
import Service from '@kinvolk/headlamp-plugin/lib/lib/k8s/service.js'
import { queryClient } from '@kinvolk/headlamp-plugin/lib/lib/queryClient.js'
import store from '@kinvolk/headlamp-plugin/lib/redux/stores/store.js'
import { QueryClientProvider } from '@tanstack/react-query'
import { createElement } from 'react'
import { createRoot } from 'react-dom/client'
import { Provider } from 'react-redux'
import { MemoryRouter } from 'react-router-dom'

const KINDS = { 'v1/pods': Pod, 'apps/v1/deployments': Deployment, 'v1/services': Service, 'v1/nodes': Node }
window.shown = {}

function Table({ resource }) {
  const { items, error } = KINDS[resource].useList({ cluster: 'all' })
  const rows = items?.map(({ metadata: { namespace, name, uid, resourceVersion } }) => {
    return [namespace === undefined ? name : `${namespace}/${name}`, `${uid} ${resourceVersion}`]
  })
  window.shown[resource] = { rows: rows ?? null, error: error?.message ?? '' }
  return createElement('p', null, `${resource}: ${rows?.length ?? 'loading'}`)
}

const tables = Object.keys(KINDS).map((resource) => createElement(Table, { key: resource, resource }))
const cached = createElement(QueryClientProvider, { client: queryClient }, tables)
const page = createElement(Provider, { store }, createElement(MemoryRouter, null, cached))
createRoot(document.getElementById('page')).render(page)
