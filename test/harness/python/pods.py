# The official client for Python, as the user of a kubeconfig: each line on stdin is a namespace, and is answered by a line of JSON, the pods there or what
# was refused.

import json
import sys

from kubernetes import client, config


def answer(value):
    print(json.dumps(value), flush=True)


def pods_in(namespace):
    try:
        return {"pods": [pod.metadata.name for pod in core.list_namespaced_pod(namespace).items]}
    except client.ApiException as refused:
        return {"status": refused.status, "message": json.loads(refused.body)["message"]}


[kubeconfig] = sys.argv[1:]
config.load_kube_config(config_file=kubeconfig)
core = client.CoreV1Api()
answer({"ready": True})
for line in sys.stdin:
    answer(pods_in(line.strip()))
