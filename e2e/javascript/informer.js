// Follows the pods of a namespace with the JavaScript client's informer, and prints its
// view, a line of JSON with names and versions, whenever it changes.
//
//	node informer.js KUBECONFIG NAMESPACE
import { KubeConfig, CoreV1Api, makeInformer } from "@kubernetes/client-node";

const [kubeconfig, namespace] = process.argv.slice(2);
const config = new KubeConfig();
config.loadFromFile(kubeconfig);
const api = config.makeApiClient(CoreV1Api);

const view = new Map();
let lists = 0;
const informer = makeInformer(config, `/api/v1/namespaces/${namespace}/pods`, () => {
  lists++;
  return api.listNamespacedPod({ namespace });
});

function print() {
  const pods = Object.fromEntries([...view].sort());
  console.log(JSON.stringify({ lists, pods }));
}
function set(pod) {
  view.set(pod.metadata.name, pod.metadata.resourceVersion);
  print();
}
informer.on("add", set);
informer.on("update", set);
informer.on("delete", (pod) => {
  view.delete(pod.metadata.name);
  print();
});
informer.on("error", (error) => {
  console.error(String(error));
  setTimeout(() => informer.start(), 500);
});
process.stdin.on("end", () => process.exit(0)).resume(); // ends with who started it
await informer.start();
