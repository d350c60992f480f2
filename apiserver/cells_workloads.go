package apiserver

import (
	"fmt"
	"slices"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func yesNo(yes bool) string {
	if yes {
		return "True"
	}
	return "False"
}

func orNotApplicable(value *intstr.IntOrString) string {
	if value == nil {
		return "N/A"
	}
	return value.String()
}

func jobDuration(job *batchv1.Job) any {
	switch {
	case job.Status.StartTime == nil:
		return ""
	case job.Status.CompletionTime == nil:
		return duration.HumanDuration(time.Since(job.Status.StartTime.Time))
	}
	return duration.HumanDuration(job.Status.CompletionTime.Sub(job.Status.StartTime.Time))
}

func ingressAddresses(ingress *networkingv1.Ingress) any {
	var addresses []string
	for _, at := range ingress.Status.LoadBalancer.Ingress {
		if at.IP != "" {
			addresses = append(addresses, at.IP)
		} else if at.Hostname != "" {
			addresses = append(addresses, at.Hostname)
		}
	}
	return strings.Join(addresses, ",")
}

func ingressPorts(ingress *networkingv1.Ingress) any {
	if len(ingress.Spec.TLS) > 0 {
		return "80, 443"
	}
	return "80"
}

// autoscalerTargets shows the measured and the target value. For metrics other than
// those of resources it shows only the kind.
func autoscalerTargets(autoscaler *autoscalingv2.HorizontalPodAutoscaler) any {
	var targets []string
	for i, m := range autoscaler.Spec.Metrics {
		now := "<unknown>"
		if m.Resource == nil {
			targets = append(targets, string(m.Type))
			continue
		}
		wanted := "<unset>"
		if value := m.Resource.Target.AverageUtilization; value != nil {
			wanted = fmt.Sprintf("%d%%", *value)
		} else if value := m.Resource.Target.AverageValue; value != nil {
			wanted = value.String()
		}
		if i < len(autoscaler.Status.CurrentMetrics) {
			if current := autoscaler.Status.CurrentMetrics[i].Resource; current != nil {
				if value := current.Current.AverageUtilization; value != nil {
					now = fmt.Sprintf("%d%%", *value)
				} else if value := current.Current.AverageValue; value != nil {
					now = value.String()
				}
			}
		}
		targets = append(targets, fmt.Sprintf("%s: %s/%s", m.Resource.Name, now, wanted))
	}
	return orNone(strings.Join(targets, ", "))
}

func slicePorts(slice *discoveryv1.EndpointSlice) any {
	var ports []string
	for _, p := range slice.Ports {
		if p.Port == nil {
			ports = append(ports, "*")
		} else {
			ports = append(ports, fmt.Sprint(*p.Port))
		}
	}
	return firstFew(ports, "<unset>")
}

func sliceEndpoints(slice *discoveryv1.EndpointSlice) any {
	var addresses []string
	for _, e := range slice.Endpoints {
		addresses = append(addresses, e.Addresses...)
	}
	return firstFew(addresses, "<unset>")
}

// firstFew shows three, and how many more there are.
func firstFew(all []string, none string) string {
	const few = 3
	if len(all) == 0 {
		return none
	}
	text := strings.Join(slices.Clip(all[:min(len(all), few)]), ",")
	if more := len(all) - few; more > 0 {
		text += fmt.Sprintf(" + %d more...", more)
	}
	return text
}
