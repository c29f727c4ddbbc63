package aggregated

// R4 device.html, devicedefinition.html, devicemetric.html.

// deviceTitleColumn shows the first item of the element deviceName.
var deviceTitleColumn = column{name: "Title", cell: first[deviceName]("deviceName"), description: "The first of the device's names."}

var deviceTable = table{
	deviceTitleColumn,
	{name: "Type", cell: one[codeableConcept]("type"), description: "The kind of device."},
	{name: "Manufacturer", cell: one[primitive]("manufacturer"), description: "The manufacturer of the device."},
	{name: "Serial", cell: one[primitive]("serialNumber"), description: "The serial number."},
	{name: "Status", cell: one[primitive]("status"), description: "Whether the device is in use."},
	{name: "Model", wide: true, cell: one[primitive]("modelNumber"), description: "The manufacturer's number of the model."},
	{name: "Patient", wide: true, cell: one[reference]("patient"), description: "The patient to whom the device is attached."},
	{name: "Location", wide: true, cell: one[reference]("location"), description: "The location of the device."},
	{name: "Owner", wide: true, cell: one[reference]("owner"), description: "The organization that is responsible for the device."},
	{name: "Expires", wide: true, cell: one[primitive]("expirationDate"), description: "The date until which the device may be used."},
}

var deviceDefinitionTable = table{
	deviceTitleColumn,
	{name: "Type", cell: one[codeableConcept]("type"), description: "The kind of device."},
	{name: "Manufacturer", cell: either(one[primitive]("manufacturerString"), one[reference]("manufacturerReference")), description: "The manufacturer of the device."},
	{name: "Model", cell: one[primitive]("modelNumber"), description: "The manufacturer's number of the model."},
	{name: "Versions", wide: true, cell: all[primitive]("version"), description: "The available versions of the device."},
	{name: "Owner", wide: true, cell: one[reference]("owner"), description: "The organization that is responsible for the device."},
}

var deviceMetricTable = table{
	{name: "Type", cell: one[codeableConcept]("type"), description: "The quantity that the device measures, sets or calculates."},
	{name: "Category", cell: one[primitive]("category"), description: "Whether the quantity is measured, set or calculated."},
	{name: "Unit", cell: one[codeableConcept]("unit"), description: "The unit of the values."},
	{name: "Source", cell: one[reference]("source"), description: "The device to which the metric belongs."},
	{name: "Status", cell: one[primitive]("operationalStatus"), description: "The state of the metric."},
	{name: "Parent", wide: true, cell: one[reference]("parent"), description: "The part of the device to which the metric belongs."},
	{name: "Color", wide: true, cell: one[primitive]("color"), description: "The color in which the metric is shown."},
}

type deviceName struct {
	Name primitive `json:"name"`
}

func (d deviceName) String() string { return string(d.Name) }
