package world

import "testing"

func TestLaunched(t *testing.T) {
	job := map[string]string{"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_NTASKS": "8"}
	step := map[string]string{"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8"}
	pbs := map[string]string{"PBS_JOBID": "7.s", "PBS_TASKNUM": "1", "PBS_NODENUM": "0", "NCPUS": "4"}
	openMPI := map[string]string{"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "PMIX_RANK": "2"}
	for _, k := range []struct {
		name string
		env  []map[string]string
		want Launch
		ok   bool
	}{
		{"nothing", nil, Launch{}, false},
		{"mpirun", []map[string]string{openMPI}, Launch{"mpirun", 2, 4, false}, true},
		{"mpirun in a batch job", []map[string]string{job, openMPI}, Launch{"mpirun", 2, 4, false}, true},
		{"mpirun on one host", []map[string]string{openMPI, {"OMPI_COMM_WORLD_LOCAL_SIZE": "4"}}, Launch{"mpirun", 2, 4, true}, true},
		{"mpirun on several hosts", []map[string]string{job, step, {"SLURM_STEP_NUM_NODES": "1"}, openMPI,
			{"OMPI_COMM_WORLD_LOCAL_SIZE": "3"}}, Launch{"mpirun", 2, 4, false}, true},
		{"srun on one host", []map[string]string{step, {"SLURM_STEP_NUM_NODES": "1"}}, Launch{"srun", 5, 8, true}, true},
		{"srun on several hosts", []map[string]string{step, {"SLURM_STEP_NUM_NODES": "2"}}, Launch{"srun", 5, 8, false}, true},
		{"mpirun in a step", []map[string]string{step, openMPI}, Launch{"mpirun", 2, 4, false}, true},
		{"srun", []map[string]string{job, step}, Launch{"srun", 5, 8, false}, true},
		{"srun with PMIx", []map[string]string{step, {"PMIX_RANK": "6"}}, Launch{"srun", 6, 8, false}, true},
		{"batch script, which is no rank", []map[string]string{job}, Launch{}, false},
		{"MPICH in a batch job", []map[string]string{job, step, {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALNRANKS": "2"}},
			Launch{"mpiexec", 1, 2, true}, true},
		{"batch script of PBS, which is no rank", []map[string]string{pbs}, Launch{}, false},
		{"batch script of LSF, which is no rank", []map[string]string{{"LSB_JOBID": "7", "LSB_JOBINDEX": "0", "LSB_DJOB_NUMPROC": "4"}},
			Launch{}, false},
		{"mpirun in a job of PBS", []map[string]string{pbs, openMPI}, Launch{"mpirun", 2, 4, false}, true},
		{"jsrun", []map[string]string{{"JSM_NAMESPACE_RANK": "1", "JSM_NAMESPACE_SIZE": "4", "JSM_NAMESPACE_LOCAL_SIZE": "2"}},
			Launch{"jsrun", 1, 4, false}, true},
		{"MPICH", []map[string]string{{"PMI_RANK": "1", "PMI_SIZE": "2"}}, Launch{"mpiexec", 1, 2, false}, true},
		{"rank without a size", []map[string]string{{"PMIX_RANK": "1"}}, Launch{}, false},
		{"rank beyond the size", []map[string]string{{"PMI_RANK": "2", "PMI_SIZE": "2"}}, Launch{}, false},
		{"not a number", []map[string]string{{"PMI_RANK": "x", "PMI_SIZE": "2"}}, Launch{}, false},
		{"negative", []map[string]string{{"PMI_RANK": "-1", "PMI_SIZE": "2"}}, Launch{}, false},
	} {
		t.Run(k.name, func(t *testing.T) {
			getenv := func(name string) string {
				value := ""
				for _, env := range k.env {
					if v, ok := env[name]; ok {
						value = v
					}
				}
				return value
			}
			if got, ok := launched(getenv); got != k.want || ok != k.ok {
				t.Errorf("got %+v %v, want %+v %v", got, ok, k.want, k.ok)
			}
		})
	}
}
