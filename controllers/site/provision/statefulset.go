package provision

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

const (
	// postgresUID is the user and group ID of the official image.
	postgresUID = 999
	// The volume is not mounted at a path where the image declares a volume of its own. The data is in
	// a subdirectory, because Postgres needs an empty one and the volume can have lost+found.
	volumePath      = "/var/lib/paddock"
	dataPath        = volumePath + "/pgdata"
	credentialsPath = "/etc/paddock/postgres"

	// stopSeconds is the maximum duration of a shutdown, which writes all changed pages. Beyond it,
	// the server is killed and replays its log at the next start.
	stopSeconds = 120
	// recoveryChecks is how many startup probes, ten seconds apart, can fail while the server replays
	// the log: an hour.
	recoveryChecks = 360
)

// statefulSet returns a StatefulSet of one Pod with one volume, and the other objects of its
// database. The volume is not in volumeClaimTemplates, because they are immutable and the volume can
// grow.
func statefulSet(site *v1alpha1.Site, o Options) []client.Object {
	spec := site.Spec.Storage.Postgres.Provisioned
	meta := about(site, o)
	return []client.Object{
		networkPolicy(meta, o, metav1.LabelSelector{MatchLabels: selector(meta.Name)}, nil),
		&corev1.Service{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
			ObjectMeta: meta,
			Spec: corev1.ServiceSpec{
				ClusterIP: corev1.ClusterIPNone, Selector: selector(meta.Name),
				Ports: []corev1.ServicePort{{Name: "postgres", Port: port, TargetPort: intstr.FromString("postgres"), Protocol: corev1.ProtocolTCP}},
			},
		},
		&corev1.PersistentVolumeClaim{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
			ObjectMeta: aboutData(site, o),
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				StorageClassName: unlessEmpty(spec.Storage.StorageClassName),
				Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *spec.Storage.Size}},
			},
		},
		&policyv1.PodDisruptionBudget{
			TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
			ObjectMeta: meta,
			Spec: policyv1.PodDisruptionBudgetSpec{
				// A PodDisruptionBudget that allows no disruption would block all drains of the node.
				MaxUnavailable: ptr.To(intstr.FromInt32(1)),
				Selector:       &metav1.LabelSelector{MatchLabels: selector(meta.Name)},
			},
		},
		&appsv1.StatefulSet{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
			ObjectMeta: meta,
			Spec: appsv1.StatefulSetSpec{
				Replicas: ptr.To(int32(1)), ServiceName: meta.Name,
				Selector: &metav1.LabelSelector{MatchLabels: selector(meta.Name)},
				// With the default policy, a Pod that never becomes ready would not be replaced when the
				// template changes.
				PodManagementPolicy: appsv1.ParallelPodManagement,
				Template:            podTemplate(meta, spec, o),
			},
		},
	}
}

func podTemplate(meta metav1.ObjectMeta, spec *v1alpha1.ProvisionedPostgres, o Options) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels, Annotations: map[string]string{"paddock.health/certificate": o.Certificate}},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken:  ptr.To(false),
			EnableServiceLinks:            ptr.To(false),
			TerminationGracePeriodSeconds: ptr.To(int64(stopSeconds + 10)),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To(int64(postgresUID)), RunAsGroup: ptr.To(int64(postgresUID)),
				FSGroup: ptr.To(int64(postgresUID)), FSGroupChangePolicy: ptr.To(corev1.FSGroupChangeOnRootMismatch),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{container(spec, o)},
			Volumes: []corev1.Volume{
				{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: meta.Name}}},
				{Name: "credentials", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
					SecretName: meta.Name,
					// Postgres rejects a key that users outside of its group can read.
					DefaultMode: ptr.To(int32(0o440)),
					Items: []corev1.KeyToPath{
						{Key: passwordKey, Path: passwordKey},
						{Key: serverCertificateKey, Path: serverCertificateKey},
						{Key: serverPrivateKeyKey, Path: serverPrivateKeyKey},
					},
				}}},
				{Name: "run", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
		},
	}
}

func container(spec *v1alpha1.ProvisionedPostgres, o Options) corev1.Container {
	config := settings(spec)
	config["ssl"] = "on"
	config["ssl_cert_file"] = credentialsPath + "/" + serverCertificateKey
	config["ssl_key_file"] = credentialsPath + "/" + serverPrivateKeyKey
	return corev1.Container{
		Name: "postgres", Image: o.PostgresImage + ":" + spec.Version,
		Args: append([]string{"postgres"}, arguments(config)...),
		// The environment variables are those of the official image's entry point.
		Env: []corev1.EnvVar{
			{Name: "PGDATA", Value: dataPath},
			{Name: "POSTGRES_USER", Value: user},
			{Name: "POSTGRES_DB", Value: database},
			{Name: "POSTGRES_PASSWORD_FILE", Value: credentialsPath + "/" + passwordKey},
			{Name: "POSTGRES_INITDB_ARGS", Value: "--encoding=UTF8 --locale=C.UTF-8 --data-checksums"},
		},
		Ports:     []corev1.ContainerPort{{Name: "postgres", ContainerPort: port, Protocol: corev1.ProtocolTCP}},
		Resources: resources(spec.Resources),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "data", MountPath: volumePath},
			{Name: "credentials", MountPath: credentialsPath, ReadOnly: true},
			{Name: "run", MountPath: "/var/run/postgresql"},
			{Name: "tmp", MountPath: "/tmp"},
		},
		StartupProbe:   isReady(10, recoveryChecks),
		ReadinessProbe: isReady(5, 2),
		LivenessProbe:  isReady(15, 6),
		// A fast shutdown does not wait for clients, whatever the image's stop signal is.
		Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{
			Command: []string{"pg_ctl", "stop", "--mode=fast", "--wait", "--timeout=" + strconv.Itoa(stopSeconds)},
		}}},
	}
}

// isReady returns a probe that connects by TCP, because the server listens only on a Unix socket
// while the image initializes a database.
func isReady(period, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{
			"pg_isready", "--quiet", "--host=127.0.0.1", "--port=" + strconv.Itoa(port), "--username=" + user, "--dbname=" + database,
		}}},
		PeriodSeconds: period, TimeoutSeconds: 5, SuccessThreshold: 1, FailureThreshold: failures,
	}
}

// networkPolicy returns a NetworkPolicy for the Pods. It allows only connections from the
// controller's namespace, and those that the additional rules allow.
func networkPolicy(meta metav1.ObjectMeta, o Options, pods metav1.LabelSelector, more []networkingv1.NetworkPolicyIngressRule) *networkingv1.NetworkPolicy {
	operator := networkingv1.NetworkPolicyIngressRule{
		Ports: []networkingv1.NetworkPolicyPort{{Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromInt32(port))}},
		From: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{corev1.LabelMetadataName: o.Namespace},
		}}},
	}
	return &networkingv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
		ObjectMeta: meta,
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: pods,
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     append([]networkingv1.NetworkPolicyIngressRule{operator}, more...),
		},
	}
}

func unlessEmpty(name string) *string {
	if name == "" {
		return nil
	}
	return &name
}
